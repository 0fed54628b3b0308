// The manifest `planish-plan/1` as a tree: what writePlan prints and readPlan accepts, in parts that mirror plan.md.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "core/plan/plan.h"
#include "core/plan/side_file.h"
#include "core/plan/strict_yaml.h"

namespace planish {

inline constexpr const char *kPlanSchema = "planish-plan/1";

// Writing.
nlohmann::ordered_json manifestJson(const Plan &plan, SideTensors &side);
nlohmann::ordered_json assignmentJson(const Assignment &assignment, SideTensors &side);
nlohmann::ordered_json manifestFields(const Fields &fields);
nlohmann::ordered_json outputBlockJson(const OutputBlock &output);

// Reading. Every function leaves its first error in the reader's YamlErrors.
Plan readManifest(const YamlReader &root, SideReader &side, YamlErrors &errors);
Assignment readAssignment(const YamlReader &entry, SideReader &side, const ModelInfo &model);
Fields readFields(const YamlReader &map);
OutputBlock readOutputBlock(const YamlReader &map);
/// Rewrite slots beside the input operators: outputs, replaced weights, low rank, exceptions, clips, other readers, training.
void readRewriteSlots(const YamlReader &entry, SideReader &side, const Assignment &assignment, Rewrite &rewrite);
nlohmann::ordered_json trainingJson(const TrainingRecord &training);
/// Adds the same slots to an entry.
void writeRewriteSlots(const Assignment &assignment, const std::string &key, nlohmann::ordered_json &entry, SideTensors &side);

/// What the manifest does not spell out: which tensors the fused prefix changes. Reads producer, consumers, fused_into, the
/// number of fused operators and the rewrite.
void completePlacement(Assignment &assignment);

/// Edge or stream id for messages and side-file keys ("layers.2.attn_in", "stream.residual").
std::string labelOf(const Assignment &assignment);
bool methodMayBeNegative(const std::vector<FittedMember> &chain);

} // namespace planish
