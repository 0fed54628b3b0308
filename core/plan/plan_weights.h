// A checkpoint opened for a plan: names resolved through the plan's family, no dump needed.
#pragma once

#include <memory>
#include <string>

#include "core/names/resolver.h"
#include "core/plan/plan.h"

namespace planish {

/// The family of the plan (`source.family`), else the one whose names fit the tensors; null when none does.
std::shared_ptr<const Family> familyOf(const Plan &plan, const FamilyList &families, const std::vector<std::string> &tensorNames);

/// Opens a checkpoint and resolves its tensors under the plan's dump names.
Expected<std::shared_ptr<const ResolvedWeights>> openForPlan(const Plan &plan, const std::string &path, const FamilyList &families);
Expected<std::shared_ptr<const ResolvedWeights>> resolveForPlan(const Plan &plan, std::shared_ptr<const Checkpoint> checkpoint,
                                                                const FamilyList &families);

} // namespace planish
