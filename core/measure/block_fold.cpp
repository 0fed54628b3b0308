#include "core/measure/block_fold.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace planish
{

namespace
{

// Outside this range x^2 loses bits to underflow or overflows, so the ratio is taken first.
constexpr double kSafeLow = 1e-280, kSafeHigh = 1e280;

void addChannels(const BlockStatistics &block, ChannelSums &into)
{
    for (std::size_t k = 0; k < block.channels; ++k) {
        into.maxAbs[k] = std::max(into.maxAbs[k], block.maxAbs[k]);
        into.minimum[k] = std::min(into.minimum[k], block.minimum[k]);
        into.maximum[k] = std::max(into.maximum[k], block.maximum[k]);
        into.sum[k] += block.sum[k];
        into.sumAbs[k] += block.sumAbs[k];
        into.energy[k] += block.energy[k];
        into.overTau[k] += block.overTau[k];
        into.overTauOrEqual[k] += block.overTauOrEqual[k];
        into.finite[k] += block.finite[k];
        into.nonFinite[k] += block.nonFinite[k];
        into.moments[k].merge({block.finite[k], block.mean[k], block.m2[k], block.m3[k], block.m4[k]});
    }
}

ChannelSums emptyChannels(std::size_t channels)
{
    ChannelSums sums;
    sums.maxAbs.assign(channels, 0.0);
    sums.minimum.assign(channels, std::numeric_limits<double>::infinity());
    sums.maximum.assign(channels, -std::numeric_limits<double>::infinity());
    for (auto *values : {&sums.sum, &sums.sumAbs, &sums.energy})
        values->assign(channels, 0.0);
    for (auto *counts : {&sums.overTau, &sums.overTauOrEqual, &sums.finite, &sums.nonFinite})
        counts->assign(channels, 0);
    sums.moments.assign(channels, {});
    return sums;
}

UnitSums unitOf(BlockStatistics &block)
{
    UnitSums unit;
    unit.rows = block.rows;
    unit.minimum = std::move(block.minimum);
    unit.maximum = std::move(block.maximum);
    unit.energy = std::move(block.energy);
    unit.overTauOrEqual = std::move(block.overTauOrEqual);
    unit.histogram = std::move(block.histogram);
    return unit;
}

// Rows of the blocks interleaved back into file order, with the first non-finite place and the row of the maximum.
void addRows(const std::vector<BlockStatistics> &blocks, const std::vector<std::int64_t> &fileRows,
             const std::vector<std::int32_t> &rowUnit, Statistics &into)
{
    std::vector<std::size_t> next(blocks.size(), 0);
    const std::size_t rows = fileRows.size();
    into.token.row = fileRows;
    into.token.maxAbs.resize(rows);
    into.token.energy.resize(rows);
    into.token.incoherence.resize(rows);
    into.token.overTau.resize(rows);
    for (std::size_t r = 0; r < rows; ++r) {
        const std::size_t unit = rowUnit.empty() ? 0 : static_cast<std::size_t>(rowUnit[r]);
        const BlockStatistics &block = blocks[unit];
        const std::size_t at = next[unit]++;
        into.token.maxAbs[r] = block.rowMaxAbs[at];
        into.token.energy[r] = block.rowEnergy[at];
        into.token.overTau[r] = block.rowOverTau[at];
        if (static_cast<std::int64_t>(at) == block.firstNonFiniteRow && into.firstNonFiniteRow < 0) {
            into.firstNonFiniteRow = fileRows[r];
            into.firstNonFiniteChannel = block.firstNonFiniteChannel;
        }
        if (block.rowMaxAbs[at] > into.maxAbs || into.argmaxRow < 0) {
            into.maxAbs = block.rowMaxAbs[at];
            into.argmaxRow = fileRows[r];
        }
    }
}

void addIncoherence(std::size_t channels, Statistics &into)
{
    for (std::size_t r = 0; r < into.token.row.size(); ++r) {
        const double maxAbs = into.token.maxAbs[r];
        into.token.incoherence[r] = maxAbs > 0.0
                                        ? std::sqrt(static_cast<double>(channels) * maxAbs * maxAbs / into.token.energy[r])
                                        : std::numeric_limits<double>::quiet_NaN();
    }
    sumIncoherence(into);
}

} // namespace

double incoherenceOf(std::span<const double> row)
{
    double maxAbs = 0.0, sum = 0.0;
    for (double x : row)
        if (std::isfinite(x))
            maxAbs = std::max(maxAbs, std::abs(x));
    if (!(maxAbs > 0.0))
        return std::numeric_limits<double>::quiet_NaN();
    for (double x : row)
        if (std::isfinite(x))
            sum += (x / maxAbs) * (x / maxAbs);
    return std::sqrt(static_cast<double>(row.size()) / sum);
}

bool energyIsSafe(double energy)
{
    return energy > kSafeLow && energy < kSafeHigh;
}

void sumIncoherence(Statistics &statistics)
{
    statistics.zeroRows = 0;
    statistics.incoherenceSum = statistics.incoherenceMax = 0.0;
    for (double mu : statistics.token.incoherence) {
        if (std::isnan(mu)) {
            ++statistics.zeroRows;
        } else {
            statistics.incoherenceSum += mu;
            statistics.incoherenceMax = std::max(statistics.incoherenceMax, mu);
        }
    }
}

Statistics foldBlocks(std::vector<BlockStatistics> blocks, const std::vector<std::int64_t> &fileRows,
                      const std::vector<std::int32_t> &rowUnit, StoredKind kind)
{
    Statistics statistics;
    statistics.kind = kind;
    statistics.tau = blocks.front().tau;
    statistics.tokens = fileRows.size();
    statistics.channels = blocks.front().channels;
    statistics.channel = emptyChannels(statistics.channels);
    for (const BlockStatistics &block : blocks) {
        addChannels(block, statistics.channel);
        if (statistics.histogram.size() < block.histogram.size())
            statistics.histogram.resize(block.histogram.size(), 0);
        for (std::size_t b = 0; b < block.histogram.size(); ++b)
            statistics.histogram[b] += block.histogram[b];
    }
    statistics.histogramBf16 = kind == StoredKind::Bf16;
    addRows(blocks, fileRows, rowUnit, statistics);
    addIncoherence(statistics.channels, statistics);
    for (const Moments &moments : statistics.channel.moments)
        statistics.tensor.merge(moments);
    for (std::uint64_t count : statistics.channel.nonFinite)
        statistics.nonFinite += count;
    if (!rowUnit.empty()) {
        for (BlockStatistics &block : blocks)
            statistics.units.push_back(unitOf(block));
        statistics.rowUnit = rowUnit;
    }
    return statistics;
}

void setArgmaxChannel(std::span<const double> row, Statistics &statistics)
{
    for (std::size_t k = 0; k < row.size(); ++k)
        if (std::abs(row[k]) == statistics.maxAbs) {
            statistics.argmaxChannel = static_cast<std::int64_t>(k);
            statistics.argmaxValue = row[k];
            return;
        }
    statistics.argmaxRow = -1; // no finite element at all
}

} // namespace planish
