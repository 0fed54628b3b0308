// What apply leaves beside its output (OUT.planish.json) and what verify adds up beside the plan (PLAN.verify.json).
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/plan/plan.h"

namespace planish {

/// "OUT.planish.json" of an output file or folder.
std::string receiptName(const std::string &out);
Expected<void> writeReceipt(const std::string &planFile, const std::string &planSha256, const ApplyResult &result,
                            const std::vector<std::string> &rewritten);

/// basis_out of every receipt in these folders; unreadable ones are left out.
std::vector<std::string> knownOutputs(const std::vector<std::string> &folders);

/// "PLAN.verify.json" beside PLAN.yaml.
std::string verifyLogName(const std::string &planFile);
/// Appends one run and returns how many runs, this one included, have read the sealed rows of the plan's dump.
Expected<int> appendVerifyRun(const std::string &planFile, const nlohmann::ordered_json &run, bool sealedRows);

/// Now, as "2026-01-31T12:00:00Z".
std::string utcNow();
/// Folder part of a path, "." when there is none.
std::string folderOf(const std::string &path);

} // namespace planish
