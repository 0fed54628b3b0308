#include "kernels/statistics.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>

#include "kernels/cpu/statistics_segment.h"
#include "kernels/cpu/workers.h"
#include "kernels/moments.h"

namespace planish {

namespace {

using cpu::ChannelFold;
using cpu::kPatterns;
using cpu::kStatSegmentRows;

/// One task: rows of the source, and where they go.
struct Segment {
    std::size_t firstRow = 0, rows = 0;
    BlockStatistics *into = nullptr;
    std::size_t targetRow = 0; ///< index of its first row in `into`
};

/// Objects that tasks borrow, so that buffers are touched for the first time once per thread and not once per task.
template <class T> class Pool {
public:
    template <class Make> std::unique_ptr<T> take(Make &&make)
    {
        const std::lock_guard lock(m_mutex);
        if (m_free.empty()) {
            return make();
        }
        auto object = std::move(m_free.back());
        m_free.pop_back();
        return object;
    }
    void giveBack(std::unique_ptr<T> object)
    {
        const std::lock_guard lock(m_mutex);
        m_free.push_back(std::move(object));
    }

private:
    std::mutex m_mutex;
    std::vector<std::unique_ptr<T>> m_free;
};

void mergeFold(const ChannelFold &from, BlockStatistics &into)
{
    for (std::size_t k = 0; k < into.channels; ++k) {
        into.minimum[k] = std::min(into.minimum[k], from.lowest[k]);
        into.maximum[k] = std::max(into.maximum[k], from.highest[k]);
        into.maxAbs[k] =
            into.minimum[k] <= into.maximum[k] ? std::max(std::fabs(into.minimum[k]), std::fabs(into.maximum[k])) : 0.0;
        into.sum[k] += from.sum[k];
        into.sumAbs[k] += from.sumAbs[k];
        into.energy[k] += from.energy[k];
        into.overTau[k] += from.over[k];
        into.overTauOrEqual[k] += from.overOrEqual[k];
    }
}

void mergeMoments(const ChannelFold &from, std::size_t rows, BlockStatistics &into)
{
    for (std::size_t k = 0; k < into.channels; ++k) {
        const CentralMoments after =
            merged({static_cast<double>(into.finite[k]), into.mean[k], into.m2[k], into.m3[k], into.m4[k]},
                   {from.finite[k], from.mean[k], from.m2[k], from.m3[k], from.m4[k]});
        into.mean[k] = after.mean;
        into.m2[k] = after.m2;
        into.m3[k] = after.m3;
        into.m4[k] = after.m4;
        into.finite[k] += static_cast<std::uint64_t>(from.finite[k]);
        into.nonFinite[k] += rows - static_cast<std::uint64_t>(from.finite[k]);
    }
}

/// Merges folds in the order of the segments, whatever order they arrive in.
class OrderedMerge {
public:
    explicit OrderedMerge(const std::vector<Segment> &segments) : m_segments(segments) {}

    void arrive(std::size_t index, std::unique_ptr<ChannelFold> fold, Pool<ChannelFold> &pool)
    {
        const std::lock_guard lock(m_mutex);
        m_waiting.emplace(index, std::move(fold));
        for (auto first = m_waiting.find(m_next); first != m_waiting.end(); first = m_waiting.find(++m_next)) {
            merge(m_segments[m_next], *first->second);
            pool.giveBack(std::move(first->second));
            m_waiting.erase(first);
        }
    }

private:
    static void merge(const Segment &segment, const ChannelFold &fold)
    {
        BlockStatistics &into = *segment.into;
        mergeFold(fold, into);
        mergeMoments(fold, segment.rows, into);
        if (fold.firstRow >= 0 && into.firstNonFiniteRow < 0) {
            into.firstNonFiniteRow = static_cast<std::int64_t>(segment.targetRow) + fold.firstRow;
            into.firstNonFiniteChannel = fold.firstChannel;
        }
    }

    const std::vector<Segment> &m_segments;
    std::mutex m_mutex;
    std::map<std::size_t, std::unique_ptr<ChannelFold>> m_waiting;
    std::size_t m_next = 0;
};

/// Counts of patterns for one accumulator after another; integers add up in any order, so a task takes whichever is free.
class PatternCounts {
public:
    PatternCounts(bool wanted, std::mutex &flushing) : m_counts(wanted ? 2 * kPatterns : 0, 0u), m_flushing(flushing) {}
    ~PatternCounts() { flush(); }

    cpu::HistogramPair countingFor(BlockStatistics *into, std::size_t elements)
    {
        constexpr std::size_t kFull = std::size_t(1) << 31;
        if (m_counts.empty()) {
            return {};
        }
        if (into != m_into || m_elements + elements > kFull) {
            flush();
        }
        m_into = into;
        m_elements += elements;
        return {m_counts.data(), m_counts.data() + kPatterns};
    }

private:
    void flush()
    {
        if (m_elements == 0) {
            return;
        }
        const std::lock_guard lock(m_flushing);
        for (std::size_t p = 0; p < kPatterns; ++p) {
            m_into->histogram[p] += std::uint64_t(m_counts[p]) + m_counts[kPatterns + p];
        }
        std::fill(m_counts.begin(), m_counts.end(), 0u);
        m_elements = 0;
    }

    std::vector<std::uint32_t> m_counts;
    std::mutex &m_flushing;
    BlockStatistics *m_into = nullptr;
    std::size_t m_elements = 0;
};

std::vector<Segment> segmentsOf(std::span<const StatisticsRun> runs)
{
    std::vector<Segment> segments;
    for (const StatisticsRun &run : runs) {
        BlockStatistics &into = *run.into;
        for (std::size_t row = 0; row < run.rows; row += kStatSegmentRows) {
            segments.push_back(
                {run.firstRow + row, std::min(kStatSegmentRows, run.rows - row), run.into, into.rows + row});
        }
        into.rows += run.rows;
        into.rowMaxAbs.resize(into.rows);
        into.rowEnergy.resize(into.rows);
        into.rowOverTau.resize(into.rows);
    }
    return segments;
}

template <class Integer>
bool scanAll(StoredKind kind, const std::vector<Segment> &segments, const FetchRows &fetch, const cpu::Workers &workers)
{
    using Scan = cpu::SegmentScan<Integer>;
    constexpr bool kCounts = sizeof(Integer) == 2;
    const std::size_t channels = segments.front().into->channels;
    const double tau = segments.front().into->tau;
    std::mutex flushing;
    Pool<Scan> scans;
    Pool<ChannelFold> folds;
    Pool<PatternCounts> counts;
    OrderedMerge merge(segments);
    std::atomic<std::size_t> next = 0;
    std::atomic<bool> failed = false;
    workers.forEach(segments.size(), [&](std::size_t) {
        const std::size_t index = next++; // in the order of the rows, so that few folds wait for an earlier one
        if (failed) {
            return;
        }
        const Segment &s = segments[index];
        auto scan = scans.take([&] { return std::make_unique<Scan>(kind, channels, tau); });
        auto patterns = counts.take([&] { return std::make_unique<PatternCounts>(kCounts, flushing); });
        auto fold = folds.take([] { return std::make_unique<ChannelFold>(); });
        const cpu::HistogramPair histogram = patterns->countingFor(s.into, s.rows * channels);
        const cpu::RowTargets rows{&s.into->rowMaxAbs[s.targetRow], &s.into->rowEnergy[s.targetRow],
                                   &s.into->rowOverTau[s.targetRow]};
        if (scan->scan(fetch, s.firstRow, s.rows, histogram, rows, *fold)) {
            merge.arrive(index, std::move(fold), folds);
        } else {
            failed = true;
        }
        scans.giveBack(std::move(scan));
        counts.giveBack(std::move(patterns));
    });
    return !failed;
}

} // namespace

bool accumulateRuns(StoredKind kind, std::span<const StatisticsRun> runs, const FetchRows &fetch, int threads)
{
    for (const StatisticsRun &run : runs) {
        if (byteSize(kind) == 2 && run.into->histogram.empty()) {
            run.into->histogram.assign(65536, 0);
        }
    }
    const std::vector<Segment> segments = segmentsOf(runs);
    if (segments.empty() || segments.front().into->channels == 0) {
        return true;
    }
    const cpu::Workers workers(threads);
    return byteSize(kind) == 2       ? scanAll<std::int16_t>(kind, segments, fetch, workers)
           : kind == StoredKind::F32 ? scanAll<std::int32_t>(kind, segments, fetch, workers)
                                     : scanAll<std::int64_t>(kind, segments, fetch, workers);
}

void accumulateRows(StoredKind kind, const std::byte *data, std::size_t rows, std::size_t strideBytes, BlockStatistics &into,
                    int threads)
{
    const StatisticsRun run{0, rows, &into};
    accumulateRuns(
        kind, std::span(&run, 1),
        [&](std::size_t first, std::size_t, std::span<std::byte>) {
            return FetchedRows{data + first * strideBytes, strideBytes};
        },
        threads);
}

} // namespace planish
