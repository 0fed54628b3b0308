#include "core/quant/clip_rule.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/share_codes.h"
#include "kernels/share_grid.h"

namespace planish {

namespace {

Expected<void> checkFinite(ConstViewD x)
{
    for (std::size_t r = 0; r < x.rows; ++r)
        for (std::size_t k = 0; k < x.cols; ++k)
            if (!std::isfinite(x(r, k)))
                return dataError("static range",
                                 "calibration row " + std::to_string(r) + ", channel " + std::to_string(k) + " is not finite",
                                 "expected finite values");
    return {};
}

/// Range of the columns [begin, end) over all rows, as the kernels would find it for one share.
Range rangeOfColumns(const NumberGrid &grid, ConstViewD x, std::size_t begin, std::size_t end)
{
    const CodeGrid codes = codeGridOf(grid);
    std::vector<double> values;
    values.reserve(x.rows * (end - begin));
    for (std::size_t r = 0; r < x.rows; ++r)
        for (std::size_t k = begin; k < end; ++k)
            values.push_back(codedInput(codes, x(r, k), -1.0));
    return clippedRange(grid, values, rangeOf(values));
}

} // namespace

Expected<FixedRanges> staticRanges(const QuantSpec &spec, ConstViewD xCalibration)
{
    const NumberGrid &grid = spec.grid;
    if (spec.isNone() || grid.timing != Timing::Static)
        return FixedRanges{};
    if (xCalibration.rows == 0 || xCalibration.cols == 0)
        return dataError("static range", "there are no calibration rows", "expected at least one");
    if (const auto finite = checkFinite(xCalibration); !finite)
        return tl::make_unexpected(finite.error());
    if (grid.format == NumberFormat::NvFp4) {
        double largest = 0.0;
        for (std::size_t r = 0; r < xCalibration.rows; ++r)
            for (const double value : xCalibration.row(r))
                largest = std::max(largest, std::abs(value));
        return FixedRanges{{-largest, largest}};
    }
    if (grid.sharing == Sharing::Tensor)
        return FixedRanges{rangeOfColumns(grid, xCalibration, 0, xCalibration.cols)};
    FixedRanges ranges;
    for (std::size_t k = 0; k < xCalibration.cols; ++k)
        ranges.push_back(rangeOfColumns(grid, xCalibration, k, k + 1));
    return ranges;
}

double staticTensorMax(const QuantSpec &spec, const FixedRanges &ranges)
{
    const bool isStaticNv = spec.grid.format == NumberFormat::NvFp4 && spec.grid.timing == Timing::Static;
    return isStaticNv && !ranges.empty() ? ranges.front().hi : -1.0;
}

} // namespace planish
