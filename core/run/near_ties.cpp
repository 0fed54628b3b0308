#include "core/run/near_ties.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace planish {

namespace {

constexpr double kTieWidth = 1e-6; // relative, the definition of cli.md

/// Spacing of the grid around |u| (u already divided by the step) for a float format: exponent range and mantissa bits.
struct FloatShape {
    int mantissa = 0;
    int minExponent = 0;
};

FloatShape floatShape(NumberFormat format)
{
    switch (format) {
    case NumberFormat::Fp8E4M3:
    case NumberFormat::MxFp8E4M3:
        return {3, -6};
    case NumberFormat::Fp8E5M2:
    case NumberFormat::MxFp8E5M2:
        return {2, -14};
    case NumberFormat::Fp6E2M3:
    case NumberFormat::MxFp6E2M3:
        return {3, 0};
    case NumberFormat::Fp6E3M2:
    case NumberFormat::MxFp6E3M2:
        return {2, -2};
    default:
        return {1, 0}; // E2M1
    }
}

bool nearTie(double u, NumberFormat format)
{
    double scaled = std::abs(u);
    if (format == NumberFormat::MxInt8)
        scaled *= 64.0;
    else if (!isInteger(format)) {
        const FloatShape shape = floatShape(format);
        int exponent = 0;
        std::frexp(scaled, &exponent);
        const int used = std::max(exponent - 1, shape.minExponent);
        scaled = std::ldexp(scaled, shape.mantissa - used);
    }
    const double distance = std::abs(scaled - std::floor(scaled) - 0.5);
    return distance <= kTieWidth * std::max(scaled, 0.5);
}

std::size_t shareOf(std::size_t row, std::size_t column, std::size_t columns, const NumberGrid &grid, std::size_t perRow)
{
    switch (grid.sharing) {
    case Sharing::Tensor:
        return 0;
    case Sharing::Row:
        return row;
    case Sharing::Channel:
        return column;
    default:
        return row * perRow + std::min(column / std::max<std::size_t>(grid.group, 1), columns);
    }
}

} // namespace

std::int64_t countNearTies(ConstViewD x, const NumberGrid &grid, const Quantized &quantized)
{
    if (grid.format == NumberFormat::None || quantized.steps.empty())
        return 0;
    const std::size_t group = isBlockFormat(grid.format) ? (grid.format == NumberFormat::NvFp4 ? 16 : 32) : grid.group;
    NumberGrid shape = grid;
    if (isBlockFormat(grid.format))
        shape.sharing = Sharing::Block;
    shape.group = group;
    const std::size_t perRow = group ? (x.cols + group - 1) / group : 1;
    std::int64_t count = 0;
    for (std::size_t r = 0; r < x.rows; ++r) {
        for (std::size_t c = 0; c < x.cols; ++c) {
            const double step = quantized.steps[shareOf(r, c, x.cols, shape, perRow)];
            count += x(r, c) != 0.0 && nearTie(x(r, c) / step, grid.format);
        }
    }
    return count;
}

} // namespace planish
