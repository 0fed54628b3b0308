// Vector loops of the statistics kernel: four rows at once, channels in the lanes, the next rows prefetched because a row stride
// of some KiB defeats the hardware prefetcher. Compiled per instruction set by Highway, chosen at run time.
#include "kernels/cpu/statistics_tile.h"

#include <algorithm>

#include <hwy/cache_control.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/statistics_vector.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace planish::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kRowsAtOnce = 4;
using Doubles = hn::ScalableTag<double>;
using VecD = hn::Vec<Doubles>;

/// Widens as many stored numbers as a vector of doubles holds.
struct LoadHalf {
    HWY_INLINE VecD operator()(const std::int16_t *p) const
    {
        const hn::Rebind<float, Doubles> df;
        const hn::Rebind<hwy::float16_t, Doubles> dh;
        return hn::PromoteTo(Doubles(), hn::PromoteTo(df, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t *>(p))));
    }
};
struct LoadBfloat {
    HWY_INLINE VecD operator()(const std::int16_t *p) const
    {
        const hn::Rebind<float, Doubles> df;
        const hn::Rebind<hwy::bfloat16_t, Doubles> db;
        return hn::PromoteTo(Doubles(), hn::PromoteTo(df, hn::LoadU(db, reinterpret_cast<const hwy::bfloat16_t *>(p))));
    }
};
struct LoadFloat {
    HWY_INLINE VecD operator()(const std::int32_t *p) const
    {
        const hn::Rebind<float, Doubles> df;
        return hn::PromoteTo(Doubles(), hn::LoadU(df, reinterpret_cast<const float *>(p)));
    }
};
struct LoadDouble {
    HWY_INLINE VecD operator()(const std::int64_t *p) const { return hn::LoadU(Doubles(), reinterpret_cast<const double *>(p)); }
};

template <class Integer> HWY_INLINE const Integer *rowOf(const TileInput &in, std::size_t row)
{
    return reinterpret_cast<const Integer *>(in.data + row * in.strideBytes);
}

/// Extrema and counts of kRows rows for one vector of channels.
template <std::size_t kRows, class Integer, class Vec>
HWY_INLINE void countLanes(const Integer *const (&rows)[kRowsAtOnce], std::size_t c, const PatternLimits<Integer> &limits,
                           StatTile<Integer> &tile, Vec (&rowHighest)[kRowsAtOnce], Vec (&rowOver)[kRowsAtOnce],
                           Integer *magnitudes)
{
    const hn::ScalableTag<Integer> di;
    constexpr int kShift = 8 * sizeof(Integer) - 1;
    const auto magnitude = hn::Set(di, static_cast<Integer>(~(std::uint64_t(1) << kShift)));
    const auto over = hn::Set(di, limits.over), overOrEqual = hn::Set(di, limits.overOrEqual);
    auto lowest = hn::Load(di, tile.lowest + c), highest = hn::Load(di, tile.highest + c);
    auto overCount = hn::Load(di, tile.over + c), overOrEqualCount = hn::Load(di, tile.overOrEqual + c);
    for (std::size_t r = 0; r < kRows; ++r) {
        const auto v = hn::LoadU(di, rows[r] + c);
        const auto absolute = hn::And(v, magnitude);
        const auto order = hn::Xor(v, hn::And(hn::ShiftRight<kShift>(v), magnitude));
        const auto isOver = hn::VecFromMask(di, hn::Gt(absolute, over));
        lowest = hn::Min(lowest, order);
        highest = hn::Max(highest, order);
        overCount = hn::Sub(overCount, isOver);
        overOrEqualCount = hn::Sub(overOrEqualCount, hn::VecFromMask(di, hn::Gt(absolute, overOrEqual)));
        rowHighest[r] = hn::Max(rowHighest[r], absolute);
        rowOver[r] = hn::Sub(rowOver[r], isOver);
        if constexpr (sizeof(Integer) == 2) {
            hn::Store(absolute, di, magnitudes + r * hn::Lanes(di));
        }
    }
    hn::Store(lowest, di, tile.lowest + c);
    hn::Store(highest, di, tile.highest + c);
    hn::Store(overCount, di, tile.over + c);
    hn::Store(overOrEqualCount, di, tile.overOrEqual + c);
}

/// Sums of kRows rows for one vector of doubles.
template <std::size_t kRows, class Integer, class Load>
HWY_INLINE void sumLanes(const Integer *const (&rows)[kRowsAtOnce], std::size_t c, Load load, StatTile<Integer> &tile,
                         VecD (&rowEnergy)[kRowsAtOnce])
{
    const Doubles dd;
    const auto pivot = hn::Load(dd, tile.pivot + c);
    auto s1 = hn::Load(dd, tile.s1 + c), s2 = hn::Load(dd, tile.s2 + c), s3 = hn::Load(dd, tile.s3 + c);
    auto s4 = hn::Load(dd, tile.s4 + c), sumAbs = hn::Load(dd, tile.sumAbs + c);
    for (std::size_t r = 0; r < kRows; ++r) {
        const auto x = load(rows[r] + c);
        const auto d = hn::Sub(x, pivot);
        const auto d2 = hn::Mul(d, d);
        sumAbs = hn::Add(sumAbs, hn::Abs(x));
        s1 = hn::Add(s1, d);
        s2 = hn::Add(s2, d2);
        s3 = hn::MulAdd(d2, d, s3);
        s4 = hn::MulAdd(d2, d2, s4);
        rowEnergy[r] = hn::MulAdd(x, x, rowEnergy[r]);
    }
    hn::Store(s1, dd, tile.s1 + c);
    hn::Store(s2, dd, tile.s2 + c);
    hn::Store(s3, dd, tile.s3 + c);
    hn::Store(s4, dd, tile.s4 + c);
    hn::Store(sumAbs, dd, tile.sumAbs + c);
}

HWY_INLINE void countPatterns(const std::uint16_t *magnitudes, std::size_t count, HistogramPair histogram)
{
    std::size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        ++histogram.even[magnitudes[i]];
        ++histogram.odd[magnitudes[i + 1]];
        ++histogram.even[magnitudes[i + 2]];
        ++histogram.odd[magnitudes[i + 3]];
    }
    for (; i < count; ++i) {
        ++histogram.even[magnitudes[i]];
    }
}

/// Lanes of one row to its numbers.
template <class Integer, class Vec>
HWY_INLINE void finishRow(std::size_t row, Vec highest, Vec over, VecD energy, StatTile<Integer> &tile)
{
    const hn::ScalableTag<Integer> di;
    HWY_ALIGN Integer lanes[hn::MaxLanes(di)];
    hn::Store(over, di, lanes);
    std::uint32_t total = 0;
    for (std::size_t lane = 0; lane < hn::Lanes(di); ++lane) {
        total += static_cast<std::uint32_t>(lanes[lane]);
    }
    tile.rowOver[row] = total;
    hn::Store(highest, di, lanes);
    tile.rowHighest[row] = *std::max_element(lanes, lanes + hn::Lanes(di));
    tile.rowEnergy[row] = hn::GetLane(hn::SumOfLanes(Doubles(), energy));
}

template <std::size_t kRows, class Integer, class Load>
HWY_INLINE void addRows(const TileInput &in, std::size_t row, std::size_t vectorised, Load load,
                        const PatternLimits<Integer> &limits, StatTile<Integer> &tile, HistogramPair histogram)
{
    const hn::ScalableTag<Integer> di;
    const Doubles dd;
    const std::size_t laneCount = hn::Lanes(di);
    const Integer *rows[kRowsAtOnce] = {};
    hn::Vec<decltype(di)> rowHighest[kRowsAtOnce], rowOver[kRowsAtOnce];
    VecD rowEnergy[kRowsAtOnce];
    for (std::size_t r = 0; r < kRows; ++r) {
        rows[r] = rowOf<Integer>(in, row + r);
        rowHighest[r] = rowOver[r] = hn::Zero(di);
        rowEnergy[r] = hn::Zero(dd);
    }
    HWY_ALIGN Integer magnitudes[kRowsAtOnce * hn::MaxLanes(di)];
    const bool prefetches = row + kRows + kRowsAtOnce <= in.rows;
    for (std::size_t c = 0; c < vectorised; c += laneCount) {
        if (prefetches) {
            for (std::size_t r = 0; r < kRows; ++r) {
                hwy::Prefetch(rowOf<Integer>(in, row + kRows + r) + c);
            }
        }
        countLanes<kRows>(rows, c, limits, tile, rowHighest, rowOver, magnitudes);
        for (std::size_t lane = 0; lane < laneCount; lane += hn::Lanes(dd)) {
            sumLanes<kRows>(rows, c + lane, load, tile, rowEnergy);
        }
        if constexpr (sizeof(Integer) == 2) {
            countPatterns(reinterpret_cast<const std::uint16_t *>(magnitudes), kRows * laneCount, histogram);
        }
    }
    for (std::size_t r = 0; r < kRows; ++r) {
        finishRow(row + r, rowHighest[r], rowOver[r], rowEnergy[r], tile);
        for (std::size_t c = vectorised; sizeof(Integer) == 2 && c < in.channels; ++c) {
            ++histogram.even[rows[r][c] & 0x7FFF];
        }
    }
}

template <class Integer, class Load>
HWY_INLINE std::size_t fill(const TileInput &in, Load load, const PatternLimits<Integer> &limits, StatTile<Integer> &tile,
                            HistogramPair histogram)
{
    const hn::ScalableTag<Integer> di;
    const std::size_t vectorised = in.channels / hn::Lanes(di) * hn::Lanes(di);
    std::size_t row = 0;
    for (; row + kRowsAtOnce <= in.rows; row += kRowsAtOnce) {
        addRows<kRowsAtOnce>(in, row, vectorised, load, limits, tile, histogram);
    }
    for (; row < in.rows; ++row) {
        addRows<1>(in, row, vectorised, load, limits, tile, histogram);
    }
    return vectorised;
}

std::size_t fill16(StoredKind kind, const TileInput &in, const PatternLimits<std::int16_t> &limits, StatTile<std::int16_t> &tile,
                   HistogramPair histogram)
{
    return kind == StoredKind::F16 ? fill(in, LoadHalf(), limits, tile, histogram)
                                   : fill(in, LoadBfloat(), limits, tile, histogram);
}

std::size_t fill32(const TileInput &in, const PatternLimits<std::int32_t> &limits, StatTile<std::int32_t> &tile)
{
    return fill(in, LoadFloat(), limits, tile, {});
}

std::size_t fill64(const TileInput &in, const PatternLimits<std::int64_t> &limits, StatTile<std::int64_t> &tile)
{
    return fill(in, LoadDouble(), limits, tile, {});
}

} // namespace planish::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace planish::cpu {

HWY_EXPORT(fill16);
HWY_EXPORT(fill32);
HWY_EXPORT(fill64);

std::size_t fillTileVector(StoredKind kind, const TileInput &in, const PatternLimits<std::int16_t> &limits,
                           StatTile<std::int16_t> &tile, HistogramPair histogram)
{
    return HWY_DYNAMIC_DISPATCH(fill16)(kind, in, limits, tile, histogram);
}

std::size_t fillTileVector(StoredKind, const TileInput &in, const PatternLimits<std::int32_t> &limits,
                           StatTile<std::int32_t> &tile, HistogramPair)
{
    return HWY_DYNAMIC_DISPATCH(fill32)(in, limits, tile);
}

std::size_t fillTileVector(StoredKind, const TileInput &in, const PatternLimits<std::int64_t> &limits,
                           StatTile<std::int64_t> &tile, HistogramPair)
{
    return HWY_DYNAMIC_DISPATCH(fill64)(in, limits, tile);
}

} // namespace planish::cpu
#endif
