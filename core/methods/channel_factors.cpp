#include "core/methods/channel_factors.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace planish {

std::vector<double> channelStatistic(const Statistics &statistics, ChannelStatistic which)
{
    const ChannelSums &sums = statistics.channel;
    std::vector<double> values(sums.maxAbs.size());
    for (std::size_t k = 0; k < values.size(); ++k) {
        const double count = std::max<double>(1.0, static_cast<double>(sums.finite[k]));
        switch (which) {
        case ChannelStatistic::AbsMax:
        case ChannelStatistic::Percentile:
            values[k] = sums.maxAbs[k];
            break;
        case ChannelStatistic::Rms:
            values[k] = std::sqrt(sums.energy[k] / count);
            break;
        case ChannelStatistic::Range:
            values[k] = sums.maximum[k] - sums.minimum[k];
            break;
        case ChannelStatistic::AbsMean:
            values[k] = sums.sumAbs[k] / count;
            break;
        case ChannelStatistic::Energy:
            values[k] = sums.energy[k];
            break;
        }
    }
    return values;
}

double linearQuantile(const std::vector<double> &sorted, double q)
{
    if (sorted.empty())
        return 0.0;
    const double h = static_cast<double>(sorted.size() - 1) * q;
    const auto lower = static_cast<std::size_t>(std::floor(h));
    const std::size_t upper = std::min(lower + 1, sorted.size() - 1);
    return sorted[lower] + (h - static_cast<double>(lower)) * (sorted[upper] - sorted[lower]);
}

std::vector<double> channelQuantile(ConstViewD x, double q)
{
    std::vector<double> values(x.cols), column(x.rows);
    for (std::size_t k = 0; k < x.cols; ++k) {
        for (std::size_t m = 0; m < x.rows; ++m)
            column[m] = std::abs(x(m, k));
        std::ranges::sort(column);
        values[k] = linearQuantile(column, q);
    }
    return values;
}

std::vector<double> weightMaxima(const std::vector<ConsumerWeights> &consumers)
{
    std::vector<double> maxima(consumers.empty() ? 0 : consumers.front().weight->cols());
    for (const ConsumerWeights &consumer : consumers)
        for (std::size_t n = 0; n < consumer.weight->rows(); ++n)
            for (std::size_t k = 0; k < maxima.size(); ++k)
                maxima[k] = std::max(maxima[k], std::abs((*consumer.weight)(n, k)));
    return maxima;
}

std::vector<double> weightRms(const std::vector<ConsumerWeights> &consumers)
{
    std::vector<double> rms(consumers.empty() ? 0 : consumers.front().weight->cols());
    std::size_t rows = 0;
    for (const ConsumerWeights &consumer : consumers) {
        rows += consumer.weight->rows();
        for (std::size_t n = 0; n < consumer.weight->rows(); ++n)
            for (std::size_t k = 0; k < rms.size(); ++k)
                rms[k] += (*consumer.weight)(n, k) * (*consumer.weight)(n, k);
    }
    for (double &value : rms)
        value = std::sqrt(value / static_cast<double>(std::max<std::size_t>(rows, 1)));
    return rms;
}

std::vector<double> reducedOverTies(std::vector<double> values, const Ties &ties, TieReduction reduction)
{
    if (ties.set.size() != values.size() || ties.count == 0)
        return values;
    std::vector<double> reduced(ties.count);
    std::vector<std::size_t> members(ties.count);
    for (std::size_t k = 0; k < values.size(); ++k) {
        double &set = reduced[static_cast<std::size_t>(ties.set[k])];
        set = reduction == TieReduction::Max ? std::max(set, values[k]) : set + values[k];
        ++members[static_cast<std::size_t>(ties.set[k])];
    }
    for (std::size_t k = 0; k < values.size(); ++k) {
        const auto set = static_cast<std::size_t>(ties.set[k]);
        values[k] = reduction == TieReduction::Max ? reduced[set] : reduced[set] / static_cast<double>(members[set]);
    }
    return values;
}

std::vector<std::int64_t> channelsDescending(const std::vector<double> &values)
{
    std::vector<std::int64_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) {
        return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
    });
    return order;
}

} // namespace planish
