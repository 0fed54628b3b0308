// Vector loops of the statistics kernel, strip by strip: extrema and the check for finite values first, then sums, counts and the
// histogram, which all read the first-level cache. Four rows at once, channels in the lanes; the next rows are prefetched because
// a row stride of some KiB defeats the hardware prefetcher. Compiled per instruction set by Highway, chosen at run time.
#include "kernels/cpu/statistics_tile.h"

#include <algorithm>
#include <limits>

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

template <class Integer> HWY_INLINE const Integer *rowOf(const StripInput &in, std::size_t row)
{
    return reinterpret_cast<const Integer *>(in.data + row * in.strideBytes);
}

template <class Integer> constexpr Integer kMagnitude = std::numeric_limits<Integer>::max();

/// Extrema of the patterns of one strip, merged into the tile once all of them are known to be finite.
template <class Integer> struct alignas(64) StripExtrema {
    Integer signedMax[kStatTileChannels], signedMin[kStatTileChannels];
    std::make_unsigned_t<Integer> unsignedMax[kStatTileChannels];
};

template <class Integer> HWY_INLINE void prefetchRows(const StripInput &in, std::size_t row, std::size_t count, std::size_t c)
{
    for (std::size_t r = row; r < std::min(row + count, in.rows + in.rowsAfter); ++r) {
        hwy::Prefetch(rowOf<Integer>(in, r) + c);
    }
}

/// Extrema of kRows rows over all channels; the first rows of a strip start the channel extrema.
template <std::size_t kRows, class Integer>
HWY_INLINE void scanExtrema(const StripInput &in, std::size_t row, std::size_t vectorised, StripExtrema<Integer> &extrema,
                            StripRows<Integer> &strip)
{
    const hn::ScalableTag<Integer> di;
    const hn::RebindToUnsigned<decltype(di)> du;
    const auto magnitude = hn::Set(di, kMagnitude<Integer>);
    hn::Vec<decltype(di)> rowHighest[kRows];
    const Integer *rows[kRows];
    for (std::size_t r = 0; r < kRows; ++r) {
        rowHighest[r] = hn::Zero(di);
        rows[r] = rowOf<Integer>(in, row + r);
    }
    for (std::size_t c = 0; c < vectorised; c += hn::Lanes(di)) {
        prefetchRows<Integer>(in, row + kRows, kRows, c);
        auto v = hn::LoadU(di, rows[0] + c);
        auto signedMax = v, signedMin = v;
        auto unsignedMax = hn::BitCast(du, v);
        if (row > 0) {
            signedMax = hn::Max(v, hn::Load(di, extrema.signedMax + c));
            signedMin = hn::Min(v, hn::Load(di, extrema.signedMin + c));
            unsignedMax = hn::Max(unsignedMax, hn::Load(du, extrema.unsignedMax + c));
        }
        rowHighest[0] = hn::Max(rowHighest[0], hn::And(v, magnitude));
        for (std::size_t r = 1; r < kRows; ++r) {
            v = hn::LoadU(di, rows[r] + c);
            signedMax = hn::Max(signedMax, v);
            signedMin = hn::Min(signedMin, v);
            unsignedMax = hn::Max(unsignedMax, hn::BitCast(du, v));
            rowHighest[r] = hn::Max(rowHighest[r], hn::And(v, magnitude));
        }
        hn::Store(signedMax, di, extrema.signedMax + c);
        hn::Store(signedMin, di, extrema.signedMin + c);
        hn::Store(unsignedMax, du, extrema.unsignedMax + c);
    }
    HWY_ALIGN Integer lanes[hn::MaxLanes(di)];
    for (std::size_t r = 0; r < kRows; ++r) {
        hn::Store(rowHighest[r], di, lanes);
        strip.highest[row + r] = *std::max_element(lanes, lanes + hn::Lanes(di));
    }
}

template <class Integer>
HWY_INLINE void mergeExtrema(const StripExtrema<Integer> &from, std::size_t vectorised, StatTile<Integer> &tile)
{
    for (std::size_t c = 0; c < vectorised; ++c) {
        tile.signedMax[c] = std::max(tile.signedMax[c], from.signedMax[c]);
        tile.signedMin[c] = std::min(tile.signedMin[c], from.signedMin[c]);
        tile.unsignedMax[c] = std::max(tile.unsignedMax[c], from.unsignedMax[c]);
    }
}

/// Counts above the threshold, only where the extrema say that there are any.
template <class Integer>
HWY_INLINE void countOver(const StripInput &in, std::size_t vectorised, const PatternLimits<Integer> &limits,
                          const StripExtrema<Integer> &extrema, StatTile<Integer> &tile, StripRows<Integer> &strip)
{
    const hn::ScalableTag<Integer> di;
    const auto magnitude = hn::Set(di, kMagnitude<Integer>);
    const auto over = hn::Set(di, limits.over), overOrEqual = hn::Set(di, limits.overOrEqual);
    for (std::size_t c = 0; c < vectorised; c += hn::Lanes(di)) {
        const auto negative = hn::BitCast(di, hn::Load(hn::RebindToUnsigned<decltype(di)>(), extrema.unsignedMax + c));
        const auto largest = hn::Max(hn::Load(di, extrema.signedMax + c), hn::And(negative, magnitude));
        if (hn::AllFalse(di, hn::Gt(largest, overOrEqual))) {
            continue;
        }
        auto overCount = hn::Load(di, tile.over + c), overOrEqualCount = hn::Load(di, tile.overOrEqual + c);
        for (std::size_t r = 0; r < in.rows; ++r) {
            const auto absolute = hn::And(hn::LoadU(di, rowOf<Integer>(in, r) + c), magnitude);
            const auto isOver = hn::Gt(absolute, over);
            overCount = hn::Sub(overCount, hn::VecFromMask(di, isOver));
            overOrEqualCount = hn::Sub(overOrEqualCount, hn::VecFromMask(di, hn::Gt(absolute, overOrEqual)));
            strip.over[r] += static_cast<std::uint32_t>(hn::CountTrue(di, isOver));
        }
        hn::Store(overCount, di, tile.over + c);
        hn::Store(overOrEqualCount, di, tile.overOrEqual + c);
    }
}

/// Sums of kRows rows over all channels.
template <std::size_t kRows, class Integer, class Load>
HWY_INLINE void addSums(const StripInput &in, std::size_t row, std::size_t vectorised, Load load, StatTile<Integer> &tile,
                        StripRows<Integer> &strip)
{
    const Doubles dd;
    const Integer *rows[kRows];
    VecD rowEnergy[kRows];
    for (std::size_t r = 0; r < kRows; ++r) {
        rows[r] = rowOf<Integer>(in, row + r);
        rowEnergy[r] = hn::Zero(dd);
    }
    for (std::size_t c = 0; c < vectorised; c += hn::Lanes(dd)) {
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
    for (std::size_t r = 0; r < kRows; ++r) {
        strip.energy[row + r] = hn::GetLane(hn::SumOfLanes(dd, rowEnergy[r]));
    }
}

/// Four patterns a load.
HWY_INLINE void countPatterns(const StripInput &in, std::size_t vectorised, HistogramPair histogram)
{
    constexpr std::uint64_t kMagnitudes = 0x7FFF7FFF7FFF7FFFull;
    for (std::size_t r = 0; r < in.rows; ++r) {
        const std::byte *row = in.data + r * in.strideBytes;
        std::size_t c = 0;
        for (; c + 4 <= vectorised; c += 4) {
            std::uint64_t four;
            std::memcpy(&four, row + 2 * c, sizeof four);
            four &= kMagnitudes;
            ++histogram.even[four & 0xFFFF];
            ++histogram.odd[four >> 16 & 0xFFFF];
            ++histogram.even[four >> 32 & 0xFFFF];
            ++histogram.odd[four >> 48];
        }
        for (; c < vectorised; ++c) {
            ++histogram.even[rowOf<std::int16_t>(in, r)[c] & kMagnitude<std::int16_t>];
        }
    }
}

template <class Integer, class Load>
HWY_INLINE std::size_t fill(const StripInput &in, Load load, const PatternLimits<Integer> &limits, StatTile<Integer> &tile,
                            StripRows<Integer> &rows, HistogramPair histogram)
{
    const hn::ScalableTag<Integer> di;
    const std::size_t vectorised = in.channels / hn::Lanes(di) * hn::Lanes(di), grouped = in.rows / kRowsAtOnce * kRowsAtOnce;
    StripExtrema<Integer> extrema;
    StripRows<Integer> added;
    for (std::size_t row = 0; row < grouped; row += kRowsAtOnce) {
        scanExtrema<kRowsAtOnce>(in, row, vectorised, extrema, added);
    }
    for (std::size_t row = grouped; row < in.rows; ++row) {
        scanExtrema<1>(in, row, vectorised, extrema, added);
    }
    if (*std::max_element(added.highest, added.highest + in.rows) >= limits.infinite) {
        return kNotFinite;
    }
    mergeExtrema(extrema, vectorised, tile);
    countOver(in, vectorised, limits, extrema, tile, rows);
    for (std::size_t row = 0; row < grouped; row += kRowsAtOnce) {
        addSums<kRowsAtOnce>(in, row, vectorised, load, tile, rows);
    }
    for (std::size_t row = grouped; row < in.rows; ++row) {
        addSums<1>(in, row, vectorised, load, tile, rows);
    }
    for (std::size_t row = 0; row < in.rows; ++row) {
        rows.highest[row] = std::max(rows.highest[row], added.highest[row]);
    }
    if constexpr (sizeof(Integer) == 2) {
        countPatterns(in, vectorised, histogram);
    }
    return vectorised;
}

std::size_t fill16(StoredKind kind, const StripInput &in, const PatternLimits<std::int16_t> &limits, StatTile<std::int16_t> &tile,
                   StripRows<std::int16_t> &rows, HistogramPair histogram)
{
    return kind == StoredKind::F16 ? fill(in, LoadHalf(), limits, tile, rows, histogram)
                                   : fill(in, LoadBfloat(), limits, tile, rows, histogram);
}

std::size_t fill32(const StripInput &in, const PatternLimits<std::int32_t> &limits, StatTile<std::int32_t> &tile,
                   StripRows<std::int32_t> &rows)
{
    return fill(in, LoadFloat(), limits, tile, rows, {});
}

std::size_t fill64(const StripInput &in, const PatternLimits<std::int64_t> &limits, StatTile<std::int64_t> &tile,
                   StripRows<std::int64_t> &rows)
{
    return fill(in, LoadDouble(), limits, tile, rows, {});
}

} // namespace planish::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace planish::cpu {

HWY_EXPORT(fill16);
HWY_EXPORT(fill32);
HWY_EXPORT(fill64);

std::size_t fillStripVector(StoredKind kind, const StripInput &in, const PatternLimits<std::int16_t> &limits,
                            StatTile<std::int16_t> &tile, StripRows<std::int16_t> &rows, HistogramPair histogram)
{
    return HWY_DYNAMIC_DISPATCH(fill16)(kind, in, limits, tile, rows, histogram);
}

std::size_t fillStripVector(StoredKind, const StripInput &in, const PatternLimits<std::int32_t> &limits,
                            StatTile<std::int32_t> &tile, StripRows<std::int32_t> &rows, HistogramPair)
{
    return HWY_DYNAMIC_DISPATCH(fill32)(in, limits, tile, rows);
}

std::size_t fillStripVector(StoredKind, const StripInput &in, const PatternLimits<std::int64_t> &limits,
                            StatTile<std::int64_t> &tile, StripRows<std::int64_t> &rows, HistogramPair)
{
    return HWY_DYNAMIC_DISPATCH(fill64)(in, limits, tile, rows);
}

} // namespace planish::cpu
#endif
