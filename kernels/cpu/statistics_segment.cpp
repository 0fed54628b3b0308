#include "kernels/cpu/statistics_segment.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/moments.h"

namespace planish::cpu {

namespace {

constexpr std::size_t kPieceBytes = std::size_t(512) << 10; ///< with the accumulators of 4096 channels in 1 MiB of cache

template <class Integer> double valueOf(StoredKind kind, Integer pattern)
{
    if constexpr (sizeof(Integer) == 2) {
        const auto bits = static_cast<std::uint16_t>(pattern);
        return kind == StoredKind::F16 ? halfToFloat(bits) : bfloat16ToFloat(bits);
    } else if constexpr (sizeof(Integer) == 4) {
        return std::bit_cast<float>(pattern);
    } else {
        return std::bit_cast<double>(pattern);
    }
}

template <class Integer> Integer patternAt(const std::byte *row, std::size_t channel)
{
    Integer pattern;
    std::memcpy(&pattern, row + channel * sizeof pattern, sizeof pattern);
    return pattern;
}

template <class Integer> Integer magnitudeOf(Integer pattern)
{
    return static_cast<Integer>(pattern & std::numeric_limits<Integer>::max());
}

/// x <-> integer of the same order (two's complement from sign and magnitude); its own inverse.
template <class Integer> Integer ordered(Integer pattern)
{
    return pattern < 0 ? static_cast<Integer>(pattern ^ std::numeric_limits<Integer>::max()) : pattern;
}

/// The median of three rows: one of the values, and hardly ever the outlier that would cost digits.
template <class Integer> double pivotOf(StoredKind kind, const std::array<const std::byte *, 3> &rows, std::size_t channel)
{
    Integer candidates[3];
    for (std::size_t i = 0; i < 3; ++i) {
        candidates[i] = ordered(patternAt<Integer>(rows[i], channel));
    }
    std::sort(candidates, candidates + 3);
    const double pivot = valueOf<Integer>(kind, ordered(candidates[1]));
    return std::isfinite(pivot) ? pivot : 0.0;
}

template <class Integer> void clear(StatTile<Integer> &tile, std::size_t channels, std::size_t rows)
{
    std::fill_n(tile.signedMax, channels, std::numeric_limits<Integer>::min());
    std::fill_n(tile.signedMin, channels, std::numeric_limits<Integer>::max());
    std::fill_n(tile.unsignedMax, channels, 0);
    for (auto *counts : {tile.over, tile.overOrEqual}) {
        std::fill_n(counts, channels, Integer(0));
    }
    for (auto *sums : {tile.s1, tile.s2, tile.s3, tile.s4, tile.sumAbs}) {
        std::fill_n(sums, channels, 0.0);
    }
    std::fill_n(tile.finite, channels, static_cast<double>(rows));
}

/// Writes the channels of one tile from `first` on.
template <class Integer>
void foldTile(StoredKind kind, const StatTile<Integer> &t, std::size_t first, std::size_t channels, ChannelFold &into)
{
    for (std::size_t c = 0; c < channels; ++c) {
        const bool any = t.finite[c] > 0.0;
        into.lowest[first + c] = any ? valueOf<Integer>(kind, t.lowest(c)) : std::numeric_limits<double>::infinity();
        into.highest[first + c] = any ? valueOf<Integer>(kind, t.highest(c)) : -std::numeric_limits<double>::infinity();
        into.over[first + c] = static_cast<std::uint32_t>(t.over[c]);
        into.overOrEqual[first + c] = static_cast<std::uint32_t>(t.overOrEqual[c]);
    }
    double *sum = &into.sum[first], *sumAbs = &into.sumAbs[first], *energy = &into.energy[first], *finite = &into.finite[first];
    double *mean = &into.mean[first], *m2 = &into.m2[first], *m3 = &into.m3[first], *m4 = &into.m4[first];
#pragma GCC ivdep
    for (std::size_t c = 0; c < channels; ++c) {
        const CentralMoments moments = merged({0, 0, 0, 0, 0}, momentsAboutPivot(t.finite[c], t.pivot[c], t.s1[c], t.s2[c], t.s3[c], t.s4[c]));
        sum[c] = t.finite[c] * t.pivot[c] + t.s1[c];
        sumAbs[c] = t.sumAbs[c];
        // Safe from cancellation: the pivot is one of the values, so pivot^2 is part of the energy.
        energy[c] = t.s2[c] + t.pivot[c] * (2.0 * t.s1[c] + t.finite[c] * t.pivot[c]);
        finite[c] = moments.n;
        mean[c] = moments.mean;
        m2[c] = moments.m2;
        m3[c] = moments.m3;
        m4[c] = moments.m4;
    }
}

} // namespace

/// Largest pattern whose value is at most tau, -1 when there is none: patterns of |x| order like the values.
template <class Integer> PatternLimits<Integer> limitsOf(StoredKind kind, double tau)
{
    PatternLimits<Integer> limits;
    limits.infinite = kind == StoredKind::F16    ? Integer(0x7C00)
                      : kind == StoredKind::Bf16 ? Integer(0x7F80)
                      : kind == StoredKind::F32  ? static_cast<Integer>(0x7F800000)
                                                 : static_cast<Integer>(0x7FF0000000000000);
    std::int64_t low = -1, high = limits.infinite; // value(low) <= tau < value(high)
    while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        (valueOf<Integer>(kind, static_cast<Integer>(middle)) <= tau ? low : high) = middle;
    }
    limits.over = static_cast<Integer>(low);
    limits.overOrEqual = static_cast<Integer>(low >= 0 && valueOf<Integer>(kind, limits.over) == tau ? low - 1 : low);
    return limits;
}

void ChannelFold::resize(std::size_t channels)
{
    for (auto *values : {&lowest, &highest, &sum, &sumAbs, &energy, &finite, &mean, &m2, &m3, &m4}) {
        values->resize(channels);
    }
    over.resize(channels);
    overOrEqual.resize(channels);
}

template <class Integer>
SegmentScan<Integer>::SegmentScan(StoredKind kind, std::size_t channels, double tau)
    : m_kind(kind), m_channels(channels), m_strideBytes(channels * sizeof(Integer)), m_limits(limitsOf<Integer>(kind, tau)),
      m_tiles((channels + kStatTileChannels - 1) / kStatTileChannels)
{
    const std::size_t strips = kPieceBytes / (kStatStripRows * m_strideBytes);
    m_pieceRows = kStatStripRows * std::clamp<std::size_t>(strips, 1, kStatSegmentRows / kStatStripRows);
}

template <class Integer> std::size_t SegmentScan<Integer>::tileChannels(std::size_t tile) const
{
    return std::min(kStatTileChannels, m_channels - tile * kStatTileChannels);
}

template <class Integer> bool SegmentScan<Integer>::start(const FetchRows &fetch, std::size_t firstRow, std::size_t rows)
{
    m_buffer.resize(std::max<std::size_t>(3, std::min(m_pieceRows, rows)) * m_strideBytes);
    std::array<const std::byte *, 3> three{};
    for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t row = i == 0 ? 0 : i == 1 ? rows / 2 : rows - 1;
        const FetchedRows got = fetch(firstRow + row, 1, std::span(m_buffer).subspan(i * m_strideBytes, m_strideBytes));
        if (!got.data) {
            return false;
        }
        three[i] = got.data;
    }
    for (std::size_t t = 0; t < m_tiles.size(); ++t) {
        clear(m_tiles[t], tileChannels(t), rows);
        for (std::size_t c = 0; c < tileChannels(t); ++c) {
            m_tiles[t].pivot[c] = pivotOf<Integer>(m_kind, three, t * kStatTileChannels + c);
        }
    }
    return true;
}

template <class Integer>
bool SegmentScan<Integer>::scan(const FetchRows &fetch, std::size_t firstRow, std::size_t rows, HistogramPair histogram,
                                RowTargets targets, ChannelFold &fold)
{
    m_firstRow = m_firstChannel = -1;
    if (!start(fetch, firstRow, rows)) {
        return false;
    }
    for (std::size_t row = 0; row < rows; row += m_pieceRows) {
        const std::size_t count = std::min(m_pieceRows, rows - row);
        const FetchedRows got = fetch(firstRow + row, count, std::span(m_buffer).first(count * m_strideBytes));
        if (!got.data) {
            return false;
        }
        scanPiece({got.data, count, m_channels, got.strideBytes, 0}, row, histogram, targets);
    }
    fold.resize(m_channels);
    fold.firstRow = m_firstRow;
    fold.firstChannel = m_firstChannel;
    for (std::size_t t = 0; t < m_tiles.size(); ++t) {
        foldTile(m_kind, m_tiles[t], t * kStatTileChannels, tileChannels(t), fold);
    }
    return true;
}

template <class Integer>
void SegmentScan<Integer>::scanPiece(const StripInput &piece, std::size_t rowsBefore, HistogramPair histogram, RowTargets targets)
{
    StripRows<Integer> strips[kStatSegmentRows / kStatStripRows];
    for (std::size_t channel = 0; channel < m_channels; channel += kStatTileChannels) {
        for (std::size_t row = 0; row < piece.rows; row += kStatStripRows) {
            const std::size_t count = std::min(kStatStripRows, piece.rows - row);
            const StripInput in{piece.data + row * piece.strideBytes + channel * sizeof(Integer), count,
                                tileChannels(channel / kStatTileChannels), piece.strideBytes, piece.rows - row - count};
            StripRows<Integer> &rows = strips[row / kStatStripRows];
            addStrip({in, rowsBefore + row, channel}, rows, histogram);
            for (std::size_t r = 0; r < count; ++r) {
                double &energy = targets.energy[rowsBefore + row + r];
                energy = channel == 0 ? rows.energy[r] : energy + rows.energy[r];
            }
        }
    }
    for (std::size_t row = 0; row < piece.rows; ++row) {
        const StripRows<Integer> &rows = strips[row / kStatStripRows];
        targets.maxAbs[rowsBefore + row] = valueOf<Integer>(m_kind, rows.highest[row % kStatStripRows]);
        targets.over[rowsBefore + row] = rows.over[row % kStatStripRows];
    }
}

template <class Integer>
void SegmentScan<Integer>::addStrip(const Strip &strip, StripRows<Integer> &rows, HistogramPair histogram)
{
    StatTile<Integer> &tile = m_tiles[strip.channel / kStatTileChannels];
    std::size_t done = fillStripVector(m_kind, strip.in, m_limits, tile, rows, histogram);
    if (done == kNotFinite) {
        done = 0;
        std::fill_n(rows.energy, strip.in.rows, 0.0);
    }
    addScalar(strip, done, rows, histogram);
}

/// The channels from `begin` on, without the elements that are not finite.
template <class Integer>
void SegmentScan<Integer>::addScalar(const Strip &strip, std::size_t begin, StripRows<Integer> &rows, HistogramPair histogram)
{
    StatTile<Integer> &t = m_tiles[strip.channel / kStatTileChannels];
    for (std::size_t r = 0; r < strip.in.rows; ++r) {
        for (std::size_t c = begin; c < strip.in.channels; ++c) {
            const auto pattern = patternAt<Integer>(strip.in.data + r * strip.in.strideBytes, c), absolute = magnitudeOf(pattern);
            if (absolute >= m_limits.infinite) {
                t.finite[c] -= 1.0;
                notePlace(strip.row + r, strip.channel + c);
                continue;
            }
            const double x = valueOf<Integer>(m_kind, pattern), d = x - t.pivot[c], d2 = d * d;
            t.signedMax[c] = std::max(t.signedMax[c], pattern);
            t.signedMin[c] = std::min(t.signedMin[c], pattern);
            t.unsignedMax[c] = std::max(t.unsignedMax[c], static_cast<std::make_unsigned_t<Integer>>(pattern));
            t.over[c] = static_cast<Integer>(t.over[c] + (absolute > m_limits.over ? 1 : 0));
            t.overOrEqual[c] = static_cast<Integer>(t.overOrEqual[c] + (absolute > m_limits.overOrEqual ? 1 : 0));
            t.s1[c] += d;
            t.s2[c] += d2;
            t.s3[c] += d2 * d;
            t.s4[c] += d2 * d2;
            t.sumAbs[c] += std::fabs(x);
            rows.energy[r] += x * x;
            rows.highest[r] = std::max(rows.highest[r], absolute);
            rows.over[r] += absolute > m_limits.over ? 1 : 0;
            if constexpr (sizeof(Integer) == 2) {
                ++histogram.even[absolute];
            }
        }
    }
}

template <class Integer> void SegmentScan<Integer>::notePlace(std::size_t row, std::size_t channel)
{
    const std::pair place(static_cast<std::int64_t>(row), static_cast<std::int64_t>(channel));
    if (m_firstRow < 0 || place < std::pair(m_firstRow, m_firstChannel)) {
        m_firstRow = place.first;
        m_firstChannel = place.second;
    }
}

template PatternLimits<std::int16_t> limitsOf(StoredKind, double);
template PatternLimits<std::int32_t> limitsOf(StoredKind, double);
template PatternLimits<std::int64_t> limitsOf(StoredKind, double);
template class SegmentScan<std::int16_t>;
template class SegmentScan<std::int32_t>;
template class SegmentScan<std::int64_t>;

} // namespace planish::cpu
