// Comparing candidates on equal terms: presets and candidate files, ranking in tie sets by paired differences, totals, Pareto.
#pragma once

#include <string>
#include <vector>

#include "core/evaluate/evaluate.h"

namespace planish {

enum class Effort { Quick, Full };
enum class RankBy { Auto, Pooled, Rows };

/// Candidates of a preset (evaluation.md 11), identity first. Members whose method has no row are marked not_built.
Expected<std::vector<Candidate>> presetCandidates(std::string_view preset, Effort effort);
std::vector<std::string> presetNames();
/// Candidates of a YAML file `planish-candidates/1`; unknown keys are Usage errors with their path. Identity is added when absent.
Expected<std::vector<Candidate>> readCandidatesFile(const std::string &file);

struct RankEntry {
    std::string name;
    std::size_t index = 0; ///< into evaluations
    int tie = 0;
    std::string reason;    ///< why tied with a better number, if so
};

struct EdgeComparison {
    EdgeId edge;
    std::vector<Evaluation> evaluations; ///< candidate order, identity first
    std::vector<RankEntry> ranking;
    std::vector<std::size_t> pareto;     ///< indices into evaluations
    std::string skipped;                 ///< sentence when the edge cannot be evaluated
};

struct CandidateTotal {
    std::string name;
    double meanRelative = 0, geometricGain = 0, onlineFlops = 0, weightBits = 0;
    int wins = 0;
};

struct Comparison {
    std::vector<Candidate> candidates;
    std::vector<EdgeComparison> edges;
    std::vector<CandidateTotal> totals;
};

/// 95 % paired difference of two evaluations over the same units: tied when it contains 0.
struct PairedDifference {
    double difference = 0, standardError = 0, low = 0, high = 0;
    bool tied = false;
};
PairedDifference pairedDifference(const ErrorSums &a, const ErrorSums &b, RankBy by);

std::vector<RankEntry> rankEvaluations(const std::vector<Evaluation> &evaluations, RankBy by);

/// Indices not dominated in (relative_frobenius, online flops, weight bits), in candidate order.
std::vector<std::size_t> paretoOf(const std::vector<Evaluation> &evaluations);
/// Per candidate over the edges on which it is ok; NaN where it is ok on none.
std::vector<CandidateTotal> totalsOf(const std::vector<Candidate> &candidates, const std::vector<EdgeComparison> &edges);

/// Jackknife over held-out requests (>= 8) or 8 contiguous blocks; evaluation.md 7.
std::optional<Uncertainty> uncertaintyOf(const ErrorSums &sums);

} // namespace planish
