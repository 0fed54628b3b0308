// CSV of an analysis: `<edge>.channels.csv`, `<edge>.tokens.csv` for every edge and one findings.csv. Undefined figures stay
// empty.
#pragma once

#include <string>
#include <vector>

#include "core/run/engine.h"

namespace planish {

/// Makes the folder if needed; every file appears whole or not at all. Gives the names written.
Expected<std::vector<std::string>> writeAnalysisCsv(const Analysis &analysis, const std::string &folder);

std::string channelsCsv(const EdgeAnalysis &edge);
std::string tokensCsv(const EdgeAnalysis &edge);
std::string findingsCsv(const Analysis &analysis);

} // namespace planish
