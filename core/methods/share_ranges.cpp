#include "core/methods/share_ranges.h"

#include <algorithm>
#include <limits>

namespace planish {
namespace {

std::size_t groupOf(const NumberGrid &grid, std::size_t cols)
{
    const bool grouped = grid.sharing == Sharing::Group || grid.sharing == Sharing::Block;
    return grouped && grid.group > 0 ? std::min(grid.group, cols) : cols;
}

void widen(Range &range, double value)
{
    range.lo = std::min(range.lo, value);
    range.hi = std::max(range.hi, value);
}

} // namespace

std::size_t sharesPerRow(const NumberGrid &grid, std::size_t cols)
{
    const std::size_t group = groupOf(grid, cols);
    return group == 0 ? 1 : (cols + group - 1) / group;
}

std::size_t shareCount(const NumberGrid &grid, std::size_t rows, std::size_t cols)
{
    if (grid.sharing == Sharing::Tensor)
        return 1;
    return grid.sharing == Sharing::Channel ? cols : rows * sharesPerRow(grid, cols);
}

FixedRanges shareRanges(const NumberGrid &grid, ConstViewD matrix)
{
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    FixedRanges ranges(shareCount(grid, matrix.rows, matrix.cols), Range{kInfinity, -kInfinity});
    const std::size_t group = std::max<std::size_t>(groupOf(grid, matrix.cols), 1);
    const std::size_t perRow = sharesPerRow(grid, matrix.cols);
    for (std::size_t r = 0; r < matrix.rows; ++r) {
        for (std::size_t k = 0; k < matrix.cols; ++k) {
            std::size_t share = r * perRow + k / group;
            if (grid.sharing == Sharing::Tensor)
                share = 0;
            else if (grid.sharing == Sharing::Channel)
                share = k;
            widen(ranges[share], matrix(r, k));
        }
    }
    return ranges;
}

} // namespace planish
