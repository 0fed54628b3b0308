// From the kernel's accumulators of units to the statistics of an edge: rows back in file order, channels merged in unit order.
#pragma once

#include <span>
#include <vector>

#include "core/measure/statistics.h"
#include "kernels/statistics.h"

namespace planish
{

/// `fileRows` are the counted rows, `rowUnit` the unit of each (empty: one unit); blocks[u] holds the rows of unit u in file
/// order. Sets everything but the median, counts of rows left out, and the channel of the maximum.
Statistics foldBlocks(std::vector<BlockStatistics> blocks, const std::vector<std::int64_t> &fileRows,
                      const std::vector<std::int32_t> &rowUnit, StoredKind kind);

/// First channel of the row of the maximum that reaches it.
void setArgmaxChannel(std::span<const double> row, Statistics &statistics);

/// sqrt(K / sum (x / max|x|)^2) of one row, safe against overflow; NaN for a zero row. Non-finite elements are left out.
double incoherenceOf(std::span<const double> row);
/// Whether a row energy neither overflowed nor lost bits to underflow, so that the incoherence follows from it.
bool energyIsSafe(double energy);
/// Recomputes the sums over token.incoherence.
void sumIncoherence(Statistics &statistics);

} // namespace planish
