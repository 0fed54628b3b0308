// CSV of compare and sweep: one row per edge x candidate, columns of cli.md.
#pragma once

#include <string>
#include <vector>

#include "core/evaluate/compare.h"

namespace planish::cli {

/// `ties` may be empty (sweep).
Expected<void> writeEvaluationsCsv(const std::vector<Evaluation> &evaluations, const std::vector<int> &ties, const std::string &file);
Expected<void> writeComparisonCsv(const Comparison &comparison, const std::string &file);
/// The candidates, and for every chain the chain with each member left out (`compare --ablate`).
std::vector<Candidate> withAblations(const std::vector<Candidate> &candidates);

} // namespace planish::cli
