#include "kernels/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>

#include "kernels/cpu/statistics_tile.h"
#include "kernels/cpu/workers.h"
#include "kernels/moments.h"

namespace planish {

namespace {

using cpu::kStatTileChannels;
using cpu::kStatTileRows;
using cpu::ordered;
using cpu::PatternLimits;
using cpu::StatTile;
using cpu::TileInput;

constexpr std::size_t kSegmentRows = kStatTileRows; ///< one task
constexpr std::size_t kPatterns = 32768;

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

/// Channel sums of one segment (or of all), the fold target of tiles.
struct ChannelFold {
    explicit ChannelFold(std::size_t channels)
        : lowest(channels, std::numeric_limits<double>::infinity()), highest(channels, -std::numeric_limits<double>::infinity()),
          sum(channels), sumAbs(channels), energy(channels), finite(channels), mean(channels), m2(channels), m3(channels),
          m4(channels), over(channels), overOrEqual(channels), nonFinite(channels)
    {
    }
    std::vector<double> lowest, highest, sum, sumAbs, energy, finite, mean, m2, m3, m4, over, overOrEqual, nonFinite;
};

/// What one task leaves: channels of its tile column, rows of its segment, first place that is not finite.
struct SegmentResult {
    ChannelFold channels{0};
    std::vector<double> rowMaxAbs, rowEnergy;
    std::vector<std::uint32_t> rowOver;
    std::int64_t firstRow = -1, firstChannel = -1;
};

template <class Integer> class SegmentScan {
public:
    SegmentScan(StoredKind kind, double tau) : m_kind(kind), m_limits(limitsOf<Integer>(kind, tau)), m_tile(new StatTile<Integer>)
    {
    }

    /// Folds the rows of `in` (up to kSegmentRows x kStatTileChannels).
    SegmentResult scan(const TileInput &in, cpu::HistogramPair histogram)
    {
        SegmentResult result;
        result.channels = ChannelFold(in.channels);
        for (std::size_t row = 0; row < in.rows; row += kStatTileRows) {
            const TileInput part{in.data + row * in.strideBytes, std::min(kStatTileRows, in.rows - row), in.channels,
                                 in.strideBytes};
            clear(part);
            const std::size_t done = cpu::fillTileVector(m_kind, part, m_limits, *m_tile, histogram);
            addScalar(part, done, part.channels);
            if (*std::max_element(m_tile->rowHighest, m_tile->rowHighest + part.rows) >= m_limits.infinite) {
                clear(part); // rare: redo the tile without the elements that are not finite
                clearRows(part);
                addScalar(part, 0, part.channels);
            }
            if (*std::min_element(m_tile->finite, m_tile->finite + part.channels) < static_cast<double>(part.rows)) {
                findFirst(part, row, result);
            }
            fold(part, result.channels);
            appendRows(part, result);
        }
        return result;
    }

private:
    Integer patternAt(const TileInput &in, std::size_t row, std::size_t channel) const
    {
        Integer pattern;
        std::memcpy(&pattern, in.data + row * in.strideBytes + channel * sizeof pattern, sizeof pattern);
        return pattern;
    }
    static Integer magnitudeOf(Integer pattern) { return pattern < 0 ? ordered(pattern) ^ Integer(-1) : pattern; }

    /// The median of three rows: one of the values, and hardly ever the outlier that would cost digits.
    double pivotOf(const TileInput &in, std::size_t channel) const
    {
        Integer candidates[3] = {ordered(patternAt(in, 0, channel)), ordered(patternAt(in, in.rows / 2, channel)),
                                 ordered(patternAt(in, in.rows - 1, channel))};
        std::sort(candidates, candidates + 3);
        const double pivot = valueOf<Integer>(m_kind, ordered(candidates[1]));
        return std::isfinite(pivot) ? pivot : 0.0;
    }

    void clear(const TileInput &in)
    {
        StatTile<Integer> &t = *m_tile;
        std::fill_n(t.lowest, in.channels, std::numeric_limits<Integer>::max());
        std::fill_n(t.highest, in.channels, std::numeric_limits<Integer>::min());
        for (auto *counts : {t.over, t.overOrEqual}) {
            std::fill_n(counts, in.channels, Integer(0));
        }
        for (auto *sums : {t.s1, t.s2, t.s3, t.s4, t.sumAbs}) {
            std::fill_n(sums, in.channels, 0.0);
        }
        std::fill_n(t.finite, in.channels, static_cast<double>(in.rows));
        for (std::size_t c = 0; c < in.channels; ++c) {
            t.pivot[c] = pivotOf(in, c);
        }
    }
    void clearRows(const TileInput &in)
    {
        std::fill_n(m_tile->rowEnergy, in.rows, 0.0);
        std::fill_n(m_tile->rowHighest, in.rows, Integer(0));
        std::fill_n(m_tile->rowOver, in.rows, 0u);
    }

    void addScalar(const TileInput &in, std::size_t begin, std::size_t end)
    {
        for (std::size_t r = 0; r < in.rows; ++r) {
            for (std::size_t c = begin; c < end; ++c) {
                addElement(in, r, c);
            }
        }
    }

    void addElement(const TileInput &in, std::size_t r, std::size_t c)
    {
        StatTile<Integer> &t = *m_tile;
        const Integer pattern = patternAt(in, r, c), absolute = magnitudeOf(pattern);
        if (absolute >= m_limits.infinite) {
            t.finite[c] -= 1.0;
            return;
        }
        const double x = valueOf<Integer>(m_kind, pattern), d = x - t.pivot[c], d2 = d * d;
        t.lowest[c] = std::min(t.lowest[c], ordered(pattern));
        t.highest[c] = std::max(t.highest[c], ordered(pattern));
        t.over[c] = static_cast<Integer>(t.over[c] + (absolute > m_limits.over ? 1 : 0));
        t.overOrEqual[c] = static_cast<Integer>(t.overOrEqual[c] + (absolute > m_limits.overOrEqual ? 1 : 0));
        t.s1[c] += d;
        t.s2[c] += d2;
        t.s3[c] += d2 * d;
        t.s4[c] += d2 * d2;
        t.sumAbs[c] += std::fabs(x);
        t.rowEnergy[r] += x * x;
        t.rowHighest[r] = std::max(t.rowHighest[r], absolute);
        t.rowOver[r] += absolute > m_limits.over ? 1 : 0;
    }

    void fold(const TileInput &in, ChannelFold &into) const
    {
        const StatTile<Integer> &t = *m_tile;
        for (std::size_t c = 0; c < in.channels; ++c) {
            if (t.finite[c] > 0.0) {
                into.lowest[c] = std::min(into.lowest[c], valueOf<Integer>(m_kind, ordered(t.lowest[c])));
                into.highest[c] = std::max(into.highest[c], valueOf<Integer>(m_kind, ordered(t.highest[c])));
            }
        }
        foldSums(t, static_cast<double>(in.rows), in.channels, into);
    }

    static void foldSums(const StatTile<Integer> &t, double rows, std::size_t channels, ChannelFold &into)
    {
        double *sum = into.sum.data(), *sumAbs = into.sumAbs.data(), *energy = into.energy.data(), *over = into.over.data();
        double *overOrEqual = into.overOrEqual.data(), *nonFinite = into.nonFinite.data(), *finite = into.finite.data();
        double *mean = into.mean.data(), *m2 = into.m2.data(), *m3 = into.m3.data(), *m4 = into.m4.data();
#pragma GCC ivdep
        for (std::size_t c = 0; c < channels; ++c) {
            const CentralMoments after = merged({finite[c], mean[c], m2[c], m3[c], m4[c]},
                                                momentsAboutPivot(t.finite[c], t.pivot[c], t.s1[c], t.s2[c], t.s3[c], t.s4[c]));
            sum[c] += t.finite[c] * t.pivot[c] + t.s1[c];
            sumAbs[c] += t.sumAbs[c];
            // Safe from cancellation: the pivot is one of the values, so pivot^2 is part of the energy.
            energy[c] += t.s2[c] + t.pivot[c] * (2.0 * t.s1[c] + t.finite[c] * t.pivot[c]);
            nonFinite[c] += rows - t.finite[c];
            finite[c] = after.n;
            mean[c] = after.mean;
            m2[c] = after.m2;
            m3[c] = after.m3;
            m4[c] = after.m4;
        }
        for (std::size_t c = 0; c < channels; ++c) {
            over[c] += static_cast<double>(t.over[c]);
            overOrEqual[c] += static_cast<double>(t.overOrEqual[c]);
        }
    }

    void appendRows(const TileInput &in, SegmentResult &result) const
    {
        for (std::size_t r = 0; r < in.rows; ++r) {
            result.rowMaxAbs.push_back(valueOf<Integer>(m_kind, m_tile->rowHighest[r]));
            result.rowEnergy.push_back(m_tile->rowEnergy[r]);
            result.rowOver.push_back(m_tile->rowOver[r]);
        }
    }

    void findFirst(const TileInput &in, std::size_t firstRow, SegmentResult &result) const
    {
        for (std::size_t r = 0; r < in.rows && result.firstRow < 0; ++r) {
            for (std::size_t c = 0; c < in.channels && result.firstRow < 0; ++c) {
                if (magnitudeOf(patternAt(in, r, c)) >= m_limits.infinite) {
                    result.firstRow = static_cast<std::int64_t>(firstRow + r);
                    result.firstChannel = static_cast<std::int64_t>(c);
                }
            }
        }
    }

    StoredKind m_kind;
    PatternLimits<Integer> m_limits;
    std::unique_ptr<StatTile<Integer>> m_tile;
};

/// One histogram pair per task at work; pairs are reused, and integers add up in any order.
class HistogramPool {
public:
    cpu::HistogramPair take()
    {
        const std::lock_guard lock(m_mutex);
        if (m_free.empty()) {
            m_all.push_back(std::make_unique<std::vector<std::uint32_t>>(2 * kPatterns, 0u));
            m_free.push_back(m_all.back().get());
        }
        auto *pair = m_free.back();
        m_free.pop_back();
        return {pair->data(), pair->data() + kPatterns};
    }
    void giveBack(cpu::HistogramPair pair)
    {
        const std::lock_guard lock(m_mutex);
        for (auto &owned : m_all) {
            if (owned->data() == pair.even) {
                m_free.push_back(owned.get());
            }
        }
    }
    void addTo(std::vector<std::uint64_t> &histogram, std::size_t finitePatterns) const
    {
        for (const auto &pair : m_all) {
            for (std::size_t p = 0; p < finitePatterns; ++p) {
                histogram[p] += std::uint64_t((*pair)[p]) + (*pair)[kPatterns + p];
            }
        }
    }

private:
    std::mutex m_mutex;
    std::vector<std::unique_ptr<std::vector<std::uint32_t>>> m_all;
    std::vector<std::vector<std::uint32_t> *> m_free;
};

void mergeChannels(const ChannelFold &from, std::size_t first, BlockStatistics &into)
{
    for (std::size_t c = 0; c < from.sum.size(); ++c) {
        const std::size_t k = first + c;
        into.minimum[k] = std::min(into.minimum[k], from.lowest[c]);
        into.maximum[k] = std::max(into.maximum[k], from.highest[c]);
        into.maxAbs[k] =
            into.minimum[k] <= into.maximum[k] ? std::max(std::fabs(into.minimum[k]), std::fabs(into.maximum[k])) : 0.0;
        into.sum[k] += from.sum[c];
        into.sumAbs[k] += from.sumAbs[c];
        into.energy[k] += from.energy[c];
        const CentralMoments after =
            merged({static_cast<double>(into.finite[k]), into.mean[k], into.m2[k], into.m3[k], into.m4[k]},
                   {from.finite[c], from.mean[c], from.m2[c], from.m3[c], from.m4[c]});
        into.mean[k] = after.mean;
        into.m2[k] = after.m2;
        into.m3[k] = after.m3;
        into.m4[k] = after.m4;
        into.finite[k] += static_cast<std::uint64_t>(from.finite[c]);
        into.nonFinite[k] += static_cast<std::uint64_t>(from.nonFinite[c]);
        into.overTau[k] += static_cast<std::uint64_t>(from.over[c]);
        into.overTauOrEqual[k] += static_cast<std::uint64_t>(from.overOrEqual[c]);
    }
}

/// Row sums of one segment: its tile columns in order.
void mergeRows(const SegmentResult &from, std::size_t firstRow, BlockStatistics &into)
{
    for (std::size_t r = 0; r < from.rowEnergy.size(); ++r) {
        into.rowMaxAbs[firstRow + r] = std::max(into.rowMaxAbs[firstRow + r], from.rowMaxAbs[r]);
        into.rowEnergy[firstRow + r] += from.rowEnergy[r];
        into.rowOverTau[firstRow + r] += from.rowOver[r];
    }
}

template <class Integer>
void accumulate(StoredKind kind, const TileInput &all, BlockStatistics &into, const cpu::Workers &workers)
{
    const std::size_t segments = (all.rows + kSegmentRows - 1) / kSegmentRows;
    const std::size_t columns = (all.channels + kStatTileChannels - 1) / kStatTileChannels;
    std::vector<SegmentResult> results(segments * columns);
    HistogramPool pool;
    workers.forEach(results.size(), [&](std::size_t task) {
        const std::size_t row = task / columns * kSegmentRows, channel = task % columns * kStatTileChannels;
        const TileInput part{all.data + row * all.strideBytes + channel * sizeof(Integer), std::min(kSegmentRows, all.rows - row),
                             std::min(kStatTileChannels, all.channels - channel), all.strideBytes};
        const bool counts = sizeof(Integer) == 2;
        const cpu::HistogramPair histogram = counts ? pool.take() : cpu::HistogramPair{};
        results[task] = SegmentScan<Integer>(kind, into.tau).scan(part, histogram);
        if (counts) {
            pool.giveBack(histogram);
        }
    });
    workers.forEach(columns, [&](std::size_t column) {
        for (std::size_t segment = 0; segment < segments; ++segment) {
            mergeChannels(results[segment * columns + column].channels, column * kStatTileChannels, into);
        }
    });
    std::int64_t firstRow = -1, firstChannel = -1;
    for (std::size_t task = 0; task < results.size(); ++task) {
        const SegmentResult &result = results[task];
        const std::size_t base = into.rows + task / columns * kSegmentRows;
        mergeRows(result, base, into);
        const auto row = static_cast<std::int64_t>(base) + result.firstRow;
        if (result.firstRow >= 0 && (firstRow < 0 || row < firstRow)) {
            firstRow = row;
            firstChannel = static_cast<std::int64_t>(task % columns * kStatTileChannels) + result.firstChannel;
        }
    }
    if (into.firstNonFiniteRow < 0 && firstRow >= 0) {
        into.firstNonFiniteRow = firstRow;
        into.firstNonFiniteChannel = firstChannel;
    }
    if (sizeof(Integer) == 2) {
        pool.addTo(into.histogram, static_cast<std::size_t>(limitsOf<Integer>(kind, 0.0).infinite));
    }
}

} // namespace

void accumulateRows(StoredKind kind, const std::byte *data, std::size_t rows, std::size_t strideBytes, BlockStatistics &into,
                    int threads)
{
    const bool isShort = byteSize(kind) == 2;
    if (isShort && into.histogram.empty()) {
        into.histogram.assign(65536, 0);
    }
    into.rowMaxAbs.resize(into.rows + rows);
    into.rowEnergy.resize(into.rows + rows);
    into.rowOverTau.resize(into.rows + rows);
    const TileInput all{data, rows, into.channels, strideBytes};
    const cpu::Workers workers(threads);
    if (isShort) {
        accumulate<std::int16_t>(kind, all, into, workers);
    } else if (kind == StoredKind::F32) {
        accumulate<std::int32_t>(kind, all, into, workers);
    } else {
        accumulate<std::int64_t>(kind, all, into, workers);
    }
    into.rows += rows;
}

} // namespace planish
