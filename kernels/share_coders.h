// The loops' view of codeElement: one small value per kind of grid, copied into registers so that loops vectorise.
// Internal to the quantizer files; both backends use it, which is what makes their codes equal.
#pragma once

#include "kernels/share_grid.h"

namespace planish {

/// rounded(x): code (integers, zero included) or value in steps (floats) without limits; limited(); value(): xhat.
struct DivideCoder {
    double step, zero, lowest, highest;
    double rounded(double x) const { return std::nearbyint(x / step) + zero; }
    double limited(double q) const { return q < lowest ? lowest : q > highest ? highest : q; }
    double value(double q) const { return step * (q - zero); }
};
struct MultiplyCoder : DivideCoder {
    double multiplier;
    double rounded(double x) const { return std::nearbyint(x * multiplier) + zero; }
};
struct SumCoder : DivideCoder {
    double rounded(double x) const { return std::nearbyint(x / step + zero); }
};
struct FloatCoder {
    double step, limit;
    FloatFormat format;
    double rounded(double x) const { return roundUnbounded(x / step, format); }
    double limited(double v) const { return v < -limit ? -limit : v > limit ? limit : v; }
    double value(double v) const { return step * v; }
};

template <class Use> decltype(auto) withCoder(const CodeGrid &grid, const ShareStep &share, Use &&use)
{
    if (grid.format) {
        return use(FloatCoder{share.step, grid.format->maxFinite, *grid.format});
    }
    const DivideCoder divide{share.step, share.zero, grid.lowest, grid.highest};
    if (share.multiplier != 0.0) {
        return use(MultiplyCoder{divide, share.multiplier});
    }
    if (grid.roundsSum) {
        return use(SumCoder{divide});
    }
    return use(divide);
}

} // namespace planish
