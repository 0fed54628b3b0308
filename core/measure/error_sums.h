// Error of a quantized product as mergeable sums per row and per output; every interval, worst row and tie set derives from it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace planish {

/// Sums over the held-out (or search) rows of one edge, consumers stacked. Merging appends rows.
struct ErrorSums {
    std::vector<std::int64_t> fileRows;   ///< [M]
    std::vector<std::int32_t> rowUnits;   ///< [M] unit index of the split
    std::vector<std::int32_t> rowRequests;
    ResidualSums sums;
    std::vector<std::size_t> consumerOutputs; ///< N of each consumer, in stack order

    double error2() const;     ///< ||E||_F^2, pairwise in row order
    double reference2() const; ///< ||Y||_F^2
    double relativeFrobenius() const;
};

/// Kahan-free pairwise sum in index order: the same bits for any thread count.
double pairwiseSum(std::span<const double> values);

} // namespace planish
