// Lower and upper end of every share of a matrix under a spec, before any clip: what fitted clips multiply.
#pragma once

#include "core/quant/quant_spec.h"
#include "kernels/matrix_view.h"

namespace planish {

/// Shares per row of a matrix of `cols` channels: 1 for tensor, row and channel sharing, else the number of groups.
std::size_t sharesPerRow(const NumberGrid &grid, std::size_t cols);
/// Number of shares of a matrix [rows, cols], in the order of the kernels (row-major; tensor 1, channel cols).
std::size_t shareCount(const NumberGrid &grid, std::size_t rows, std::size_t cols);
/// Extrema of every share; an empty matrix gives no shares.
FixedRanges shareRanges(const NumberGrid &grid, ConstViewD matrix);

} // namespace planish
