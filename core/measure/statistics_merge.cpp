#include <algorithm>
#include <cstdio>
#include <numeric>

#include "core/measure/magnitude_bins.h"
#include "core/measure/statistics.h"

namespace planish
{

namespace
{

std::string shortest(double value)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

void mergeChannels(ChannelSums &into, const ChannelSums &other)
{
    for (std::size_t k = 0; k < into.maxAbs.size(); ++k) {
        into.maxAbs[k] = std::max(into.maxAbs[k], other.maxAbs[k]);
        into.minimum[k] = std::min(into.minimum[k], other.minimum[k]);
        into.maximum[k] = std::max(into.maximum[k], other.maximum[k]);
        into.sum[k] += other.sum[k];
        into.sumAbs[k] += other.sumAbs[k];
        into.energy[k] += other.energy[k];
        into.overTau[k] += other.overTau[k];
        into.overTauOrEqual[k] += other.overTauOrEqual[k];
        into.finite[k] += other.finite[k];
        into.nonFinite[k] += other.nonFinite[k];
        into.moments[k].merge(other.moments[k]);
    }
}

template <class T> void appendAndOrder(std::vector<T> &into, const std::vector<T> &other, const std::vector<std::size_t> &order)
{
    into.insert(into.end(), other.begin(), other.end());
    if (order.size() != into.size())
        return;
    std::vector<T> sorted;
    sorted.reserve(order.size());
    for (std::size_t at : order)
        sorted.push_back(into[at]);
    into = std::move(sorted);
}

// Parts of one file interleave; rows of two files overlap in number and are kept in the order of the files.
std::vector<std::size_t> fileOrder(const std::vector<std::int64_t> &a, const std::vector<std::int64_t> &b)
{
    std::vector<std::int64_t> rows = a;
    rows.insert(rows.end(), b.begin(), b.end());
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return rows[x] < rows[y]; });
    for (std::size_t i = 1; i < order.size(); ++i)
        if (rows[order[i]] == rows[order[i - 1]])
            return {};
    return order;
}

void mergeTokens(TokenSums &into, const TokenSums &other)
{
    const auto order = fileOrder(into.row, other.row);
    appendAndOrder(into.maxAbs, other.maxAbs, order);
    appendAndOrder(into.energy, other.energy, order);
    appendAndOrder(into.incoherence, other.incoherence, order);
    appendAndOrder(into.overTau, other.overTau, order);
    appendAndOrder(into.request, other.request, order);
    appendAndOrder(into.position, other.position, order);
    appendAndOrder(into.row, other.row, order);
}

void mergeCounts(std::vector<std::uint64_t> &into, const std::vector<std::uint64_t> &other)
{
    into.resize(std::max(into.size(), other.size()), 0);
    for (std::size_t b = 0; b < other.size(); ++b)
        into[b] += other[b];
}

bool comesFirst(std::int64_t row, std::int64_t channel, std::int64_t otherRow, std::int64_t otherChannel)
{
    return otherRow < 0 || (row >= 0 && std::pair(row, channel) < std::pair(otherRow, otherChannel));
}

void mergePlaces(Statistics &into, const Statistics &other)
{
    const bool equalMax = other.maxAbs == into.maxAbs;
    if (other.maxAbs > into.maxAbs || (equalMax && other.argmaxRow >= 0 &&
                                       comesFirst(other.argmaxRow, other.argmaxChannel, into.argmaxRow, into.argmaxChannel))) {
        into.maxAbs = other.maxAbs;
        into.argmaxValue = other.argmaxValue;
        into.argmaxRow = other.argmaxRow;
        into.argmaxChannel = other.argmaxChannel;
    }
    if (other.firstNonFiniteRow >= 0 &&
        comesFirst(other.firstNonFiniteRow, other.firstNonFiniteChannel, into.firstNonFiniteRow, into.firstNonFiniteChannel)) {
        into.firstNonFiniteRow = other.firstNonFiniteRow;
        into.firstNonFiniteChannel = other.firstNonFiniteChannel;
    }
}

void mergeMedian(Statistics &into, const Statistics &other)
{
    const bool exact = into.kind == other.kind && !into.histogram.empty() && !other.histogram.empty();
    mergeCounts(into.histogram, other.histogram);
    mergeCounts(into.coarseHistogram, other.coarseHistogram);
    const auto &counts = exact ? into.histogram : into.coarseHistogram;
    into.medianExact = exact && into.medianExact && other.medianExact;
    if (into.kind != other.kind || counts.empty()) {
        // Values of different types share no bins: the larger part speaks, and says that it does.
        if (other.tokens > into.tokens)
            into.medianAbs = other.medianAbs;
        into.aboveHalf = std::max(into.aboveHalf, other.aboveHalf);
        return;
    }
    into.medianAbs = medianOfBins(into.kind, counts).value_or(0.0);
    into.aboveHalf = countAbove(into.kind, counts, 0.5 * into.maxAbs);
}

void mergeThresholds(Statistics &into, const Statistics &other)
{
    std::erase_if(into.thresholds, [&](const ThresholdCounts &counts) { return !other.at(counts.threshold); });
    for (ThresholdCounts &counts : into.thresholds) {
        mergeCounts(counts.over, other.at(counts.threshold)->over);
        mergeCounts(counts.overOrEqual, other.at(counts.threshold)->overOrEqual);
    }
}

} // namespace

Expected<void> Statistics::merge(const Statistics &other)
{
    if (tau != other.tau)
        return dataError("tau", shortest(tau) + " in one and " + shortest(other.tau) + " in the other", "statistics of one tau");
    if (channels != other.channels)
        return dataError("channels", std::to_string(channels) + " in one and " + std::to_string(other.channels) + " in the other",
                         "statistics of one width K");
    mergePlaces(*this, other);
    mergeMedian(*this, other);
    mergeThresholds(*this, other);
    mergeChannels(channel, other.channel);
    mergeTokens(token, other.token);
    tensor.merge(other.tensor);
    rowsInFile += other.rowsInFile;
    masked += other.masked;
    skipped += other.skipped;
    tokens += other.tokens;
    zeroRows += other.zeroRows;
    nonFinite += other.nonFinite;
    incoherenceSum += other.incoherenceSum;
    incoherenceMax = std::max(incoherenceMax, other.incoherenceMax);
    units.clear();
    rowUnit.clear();
    return {};
}

} // namespace planish
