#include "core/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>

#include "core/measure/block_fold.h"
#include "core/measure/counted_rows.h"
#include "core/measure/error_sums.h"
#include "core/measure/magnitude_bins.h"

namespace planish
{

namespace
{

// Rows of many units that alternate row by row are gathered first: the kernel wants many rows a call.
constexpr std::size_t kShortRun = 32;

void accumulate(const RawRows &run, BlockStatistics &into)
{
    accumulateRows(run.kind, run.data, run.rows, run.strideBytes, into);
}

void accumulateGathered(const RawRows &raw, const std::vector<std::int32_t> &rowUnit, std::size_t rowBytes,
                        std::vector<BlockStatistics> &blocks)
{
    std::vector<std::vector<std::size_t>> rowsOf(blocks.size());
    for (std::size_t r = 0; r < raw.rows; ++r)
        rowsOf[static_cast<std::size_t>(rowUnit[raw.firstIndex + r])].push_back(r);
    std::vector<std::byte> gathered;
    for (std::size_t u = 0; u < blocks.size(); ++u) {
        if (rowsOf[u].empty())
            continue;
        gathered.resize(rowsOf[u].size() * rowBytes);
        for (std::size_t i = 0; i < rowsOf[u].size(); ++i)
            std::memcpy(gathered.data() + i * rowBytes, raw.data + rowsOf[u][i] * raw.strideBytes, rowBytes);
        accumulate({raw.kind, gathered.data(), rowsOf[u].size(), rowBytes, 0}, blocks[u]);
    }
}

void accumulateUnits(const RawRows &raw, const std::vector<std::int32_t> &rowUnit, std::size_t rowBytes,
                     std::vector<BlockStatistics> &blocks)
{
    std::size_t runs = 0;
    forUnitRuns(raw, rowUnit, [&](const RawRows &, std::int32_t) { ++runs; });
    if (runs > 1 && raw.rows / runs < kShortRun)
        return accumulateGathered(raw, rowUnit, rowBytes, blocks);
    forUnitRuns(raw, rowUnit,
                [&](const RawRows &run, std::int32_t unit) { accumulate(run, blocks[static_cast<std::size_t>(unit)]); });
}

/// Consecutive file rows of one unit each.
std::vector<StatisticsRun> runsOf(const CountedRows &rows, const std::vector<std::int32_t> &rowUnit,
                                  std::vector<BlockStatistics> &blocks)
{
    std::vector<StatisticsRun> runs;
    std::int64_t last = -2;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        BlockStatistics *into = &blocks[rowUnit.empty() ? 0 : static_cast<std::size_t>(rowUnit[i])];
        if (rows.fileRows()[i] != last + 1 || runs.back().into != into)
            runs.push_back({static_cast<std::size_t>(rows.fileRows()[i]), 0, into});
        ++runs.back().rows;
        last = rows.fileRows()[i];
    }
    return runs;
}

/// Every thread reads the rows it works on, so that they are still in its cache. False: left to the path by blocks.
Expected<bool> accumulateInPlace(const CountedRows &rows, const std::vector<std::int32_t> &rowUnit,
                                 std::vector<BlockStatistics> &blocks, const std::stop_token &stop)
{
    const RowReader reader = rows.reader();
    if (!reader || rows.size() == 0)
        return false;
    const std::vector<StatisticsRun> runs = runsOf(rows, rowUnit, blocks);
    if (runs.size() > 1 && rows.size() / runs.size() < kShortRun)
        return false;
    std::mutex mutex;
    std::optional<Error> failure;
    const std::size_t rowBytes = rows.channels() * byteSize(rows.kind());
    const auto fetch = [&](std::size_t first, std::size_t, std::span<std::byte> space) -> FetchedRows {
        Expected<void> read = stop.stop_requested() ? cancelled(rows.edge().id.value) : reader(first, space.size() / rowBytes, space);
        if (read)
            return {space.data(), rowBytes};
        const std::lock_guard lock(mutex);
        failure = read.error();
        return {};
    };
    if (accumulateRuns(rows.kind(), runs, fetch))
        return true;
    return tl::make_unexpected(*failure);
}

Expected<std::vector<BlockStatistics>> accumulateAll(const CountedRows &rows, double tau,
                                                     const std::vector<std::int32_t> &rowUnit, std::size_t units,
                                                     std::stop_token stop)
{
    std::vector<BlockStatistics> blocks(units, BlockStatistics(rows.channels(), tau));
    const Expected<bool> inPlace = accumulateInPlace(rows, rowUnit, blocks, stop);
    if (!inPlace)
        return tl::make_unexpected(inPlace.error());
    if (*inPlace)
        return blocks;
    const std::size_t rowBytes = rows.channels() * byteSize(rows.kind());
    auto done = rows.visit([&](const RawRows &raw) { accumulateUnits(raw, rowUnit, rowBytes, blocks); }, stop);
    if (!done)
        return tl::make_unexpected(done.error());
    return blocks;
}

Expected<void> addMedian(const CountedRows &rows, const std::vector<std::int32_t> &rowUnit, std::size_t units,
                         Statistics &statistics, std::stop_token stop)
{
    if (!statistics.histogram.empty()) {
        statistics.medianAbs = medianOfBins(statistics.kind, statistics.histogram).value_or(0.0);
        statistics.aboveHalf = countAbove(statistics.kind, statistics.histogram, 0.5 * statistics.maxAbs);
        return {};
    }
    auto found = radixMedian(rows, rowUnit, units, 0.5 * statistics.maxAbs, stop);
    if (!found)
        return tl::make_unexpected(found.error());
    statistics.medianAbs = found->median;
    statistics.aboveHalf = found->above;
    statistics.coarseHistogram.assign(kMagnitudeBins, 0);
    for (const auto &counts : found->unitCounts)
        for (std::size_t b = 0; b < kMagnitudeBins; ++b)
            statistics.coarseHistogram[b] += counts[b];
    for (std::size_t u = 0; u < statistics.units.size(); ++u)
        statistics.units[u].histogram = std::move(found->unitCounts[u]);
    return {};
}

Expected<void> addArgmax(const Dump &dump, const DumpEdge &edge, Statistics &statistics)
{
    if (statistics.argmaxRow < 0)
        return {};
    const std::int64_t row[] = {statistics.argmaxRow};
    auto values = dump.readRows(edge, row);
    if (!values)
        return tl::make_unexpected(values.error());
    setArgmaxChannel(values->row(0), statistics);
    return {};
}

// Only doubles reach such magnitudes; every other row follows from its energy.
Expected<void> repairIncoherence(const Dump &dump, const DumpEdge &edge, Statistics &statistics)
{
    bool repaired = false;
    for (std::size_t r = 0; r < statistics.token.row.size(); ++r) {
        if (!(statistics.token.maxAbs[r] > 0.0) || energyIsSafe(statistics.token.energy[r]))
            continue;
        auto values = dump.readRows(edge, std::span(&statistics.token.row[r], 1));
        if (!values)
            return tl::make_unexpected(values.error());
        statistics.token.incoherence[r] = incoherenceOf(values->row(0));
        repaired = true;
    }
    if (repaired)
        sumIncoherence(statistics);
    return {};
}

Expected<void> addThresholds(const CountedRows &rows, const StatisticsRequest &request, Statistics &statistics,
                             std::stop_token stop)
{
    for (double threshold : request.thresholds) {
        ThresholdCounts counts{threshold, statistics.channel.overTau, statistics.channel.overTauOrEqual};
        if (threshold != statistics.tau) {
            auto blocks = accumulateAll(rows, threshold, {}, 1, stop);
            if (!blocks)
                return tl::make_unexpected(blocks.error());
            counts.over = std::move(blocks->front().overTau);
            counts.overOrEqual = std::move(blocks->front().overTauOrEqual);
        }
        statistics.thresholds.push_back(std::move(counts));
    }
    return {};
}

void countLeftOut(const Dump &dump, const DumpEdge &edge, std::size_t counted, Statistics &statistics)
{
    statistics.rowsInFile = edge.rows;
    const auto &mask = dump.info().tokens.mask;
    for (std::uint64_t row = 0; row < edge.rows && !mask.empty(); ++row) {
        const auto token = static_cast<std::size_t>(tokenOfRow(edge, static_cast<std::int64_t>(row)));
        statistics.masked += token < mask.size() && mask[token] == 0;
    }
    const std::uint64_t known = statistics.masked + counted;
    statistics.skipped = edge.rows > known ? edge.rows - known : 0;
}

void addLabels(const Dump &dump, const DumpEdge &edge, TokenSums &into)
{
    const TokenTable &tokens = dump.info().tokens;
    for (std::int64_t row : into.row) {
        const auto token = static_cast<std::size_t>(tokenOfRow(edge, row));
        into.request.push_back(token < tokens.request.size() ? tokens.request[token] : 0);
        into.position.push_back(token < tokens.position.size() ? tokens.position[token] : static_cast<std::int32_t>(token));
    }
}

} // namespace

Expected<Statistics> computeStatistics(const Dump &dump, const DumpEdge &edge, const std::vector<std::int64_t> &countedFileRows,
                                       const StatisticsRequest &request, std::stop_token stop)
{
    if (countedFileRows.empty())
        return dataError(edge.id.value, "no counted rows are left",
                         "at least one row that is not masked, skipped or of another phase");
    const CountedRows rows(dump, edge, countedFileRows);
    const bool byUnit = request.unitCount > 0 && request.rowUnit.size() == rows.size();
    const std::vector<std::int32_t> rowUnit = byUnit ? request.rowUnit : std::vector<std::int32_t>{};
    const std::size_t units = byUnit ? request.unitCount : 1;
    auto blocks = accumulateAll(rows, request.tau, rowUnit, units, stop);
    if (!blocks)
        return tl::make_unexpected(blocks.error());
    Statistics statistics = foldBlocks(std::move(*blocks), rows.fileRows(), rowUnit, rows.kind());
    countLeftOut(dump, edge, rows.size(), statistics);
    if (auto done = addArgmax(dump, edge, statistics); !done)
        return tl::make_unexpected(done.error());
    if (auto done = repairIncoherence(dump, edge, statistics); !done)
        return tl::make_unexpected(done.error());
    if (auto done = addMedian(rows, rowUnit, units, statistics, stop); !done)
        return tl::make_unexpected(done.error());
    if (auto done = addThresholds(rows, request, statistics, stop); !done)
        return tl::make_unexpected(done.error());
    if (request.tokens)
        addLabels(dump, edge, statistics.token);
    else
        statistics.token = {};
    return statistics;
}

Statistics statisticsOf(ConstViewD x, double tau)
{
    std::vector<BlockStatistics> blocks(1, BlockStatistics(x.cols, tau));
    accumulateRows(StoredKind::F64, reinterpret_cast<const std::byte *>(x.data), x.rows, x.stride * sizeof(double),
                   blocks.front());
    std::vector<std::int64_t> rows(x.rows);
    for (std::size_t r = 0; r < x.rows; ++r)
        rows[r] = static_cast<std::int64_t>(r);
    Statistics statistics = foldBlocks(std::move(blocks), rows, {}, StoredKind::F64);
    statistics.rowsInFile = x.rows;
    if (statistics.argmaxRow >= 0)
        setArgmaxChannel(x.row(static_cast<std::size_t>(statistics.argmaxRow)), statistics);
    for (std::size_t r = 0; r < x.rows; ++r)
        if (!energyIsSafe(statistics.token.energy[r]))
            statistics.token.incoherence[r] = incoherenceOf(x.row(r));
    sumIncoherence(statistics);
    std::vector<double> values;
    values.reserve(x.rows * x.cols);
    for (std::size_t r = 0; r < x.rows; ++r)
        values.insert(values.end(), x.row(r).begin(), x.row(r).end());
    for (double v : values)
        statistics.aboveHalf += std::isfinite(v) && std::abs(v) > 0.5 * statistics.maxAbs;
    statistics.medianAbs = medianMagnitude(std::move(values)).value_or(0.0);
    return statistics;
}

std::optional<double> Statistics::maxToMedian() const
{
    const double ratio = medianAbs > 0.0 ? maxAbs / medianAbs : 0.0;
    return medianAbs > 0.0 && std::isfinite(ratio) ? std::optional(ratio) : std::nullopt;
}

std::optional<double> Statistics::meanIncoherence() const
{
    return tokens > zeroRows ? std::optional(incoherenceSum / static_cast<double>(tokens - zeroRows)) : std::nullopt;
}

double Statistics::energy() const
{
    return pairwiseSum(channel.energy);
}

std::uint64_t Statistics::finite() const
{
    std::uint64_t total = 0;
    for (std::uint64_t count : channel.finite)
        total += count;
    return total;
}

const ThresholdCounts *Statistics::at(double threshold) const
{
    const auto found =
        std::find_if(thresholds.begin(), thresholds.end(), [&](const auto &t) { return t.threshold == threshold; });
    return found == thresholds.end() ? nullptr : &*found;
}

} // namespace planish
