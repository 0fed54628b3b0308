// Reads what `compare --json` printed, for a report. A file from somewhere else is refused by one sentence, never trusted.
#pragma once

#include <string>
#include <vector>

#include "core/io/error.h"
#include "core/report/report.h"

namespace planish {

struct ComparisonFile {
    std::vector<ReportDecision> decisions; ///< one per edge that was compared
    std::vector<std::string> skipped;      ///< sentences
    nlohmann::ordered_json json;           ///< as read
};

Expected<ComparisonFile> readComparisonFile(const std::string &file);

} // namespace planish
