// Which candidate an edge gets: lowest, knee or within a budget. evaluation.md 8. Pure functions on finished evaluations.
#pragma once

#include <vector>

#include "core/plan/plan.h"

namespace planish {

/// What is known about one edge when it is decided: all evaluations, and which of them a plan may hold.
struct EdgeChoice {
    const Edge *edge = nullptr;
    std::vector<Evaluation> evaluations; ///< candidate order, identity first
    std::vector<std::uint8_t> plannable; ///< parallel
    std::int64_t weightElements = 0;     ///< sum over consumers of N K
    std::size_t chosen = 0;
    bool pinned = false;
};

/// Numbers a converter has to store for this Rewrite: factors, clips, columns, low-rank branches, replaced weights.
std::int64_t fittedNumbers(const Rewrite &rewrite);

/// Inside the first tie set: fewer online flops, fewer fitted numbers, identity, lower error, earlier candidate.
std::size_t chooseLowest(const EdgeChoice &choice, RankBy by);
/// Farthest from the chord of the Pareto front of (error, online flops), both scaled to [0, 1].
std::size_t chooseKnee(const EdgeChoice &choice);

struct Budget {
    std::optional<double> maxOnlineFlops, maxWeightBits;
};
/// Greedy from identity everywhere: the change with the largest gain in squared error per added flop (then bit) that still fits.
/// Error when identity everywhere already breaks the weight-bit budget and nothing repairs it.
Expected<void> chooseWithin(std::vector<EdgeChoice> &choices, const Budget &budget);

} // namespace planish
