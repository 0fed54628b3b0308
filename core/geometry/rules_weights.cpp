// Rules that need the weights of the consumers: super_weight_candidate, weight_outlier, sensitive_channel, large_and_harmless.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/geometry/finding_rules.h"

namespace planish {

namespace {

// The unit with the largest value among those allowed; ties go to the smaller row, then channel. -1 when none passed the floor.
std::int64_t largestUnit(const std::vector<UnitExtreme> &units, const std::function<bool(std::size_t)> &allowed)
{
    std::int64_t best = -1;
    for (std::size_t u = 0; u < units.size(); ++u) {
        if (units[u].channel < 0 || !allowed(u))
            continue;
        if (best < 0) {
            best = static_cast<std::int64_t>(u);
            continue;
        }
        const UnitExtreme &mine = units[u], &other = units[static_cast<std::size_t>(best)];
        const double a = std::abs(mine.value), b = std::abs(other.value);
        if (a > b || (a == b && std::pair(mine.fileRow, mine.channel) < std::pair(other.fileRow, other.channel)))
            best = static_cast<std::int64_t>(u);
    }
    return best;
}

std::vector<double> contributions(const std::vector<double> &energy, const std::vector<double> &weightEnergy)
{
    std::vector<double> shares(energy.size());
    for (std::size_t k = 0; k < energy.size(); ++k)
        shares[k] = energy[k] * weightEnergy[k];
    const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (double &share : shares)
        share = total > 0.0 ? share / total : 0.0;
    return shares;
}

using Flags = std::vector<std::uint8_t>;
using Select = std::function<Flags(const std::vector<double> &contribution, const std::vector<double> &maxAbs)>;

// Findings of the selected channels, each with the share of draws that select it again.
Findings selectedChannels(const RuleContext &context, const std::string &kind, const FindingRule &rule, const Select &select,
                          const std::function<double(std::size_t, const std::vector<double> &)> &valueOf)
{
    const Statistics &s = context.statistics;
    if (context.weights.energy.size() != s.channels || !(s.energy() > 0.0))
        return {};
    const auto contribution = contributions(s.channel.energy, context.weights.energy);
    const Flags flags = select(contribution, s.channel.maxAbs);
    Findings findings;
    std::vector<Flags> flagsIn(context.draws.size());
    for (std::size_t k = 0; k < s.channels; ++k) {
        if (!flags[k])
            continue;
        if (findings.empty())
            for (std::size_t draw = 0; draw < flagsIn.size(); ++draw)
                flagsIn[draw] = select(contributions(context.draws.channelEnergy(draw), context.weights.energy),
                                       context.draws.channelMaxAbs(draw));
        Finding finding = findingOn(context, kind, rule, {static_cast<std::int64_t>(k)}, valueOf(k, contribution));
        finding.where = {{"channel", k}};
        finding.sharing = "token";
        finding.stability = context.draws.share([&](std::size_t draw) { return flagsIn[draw][k] != 0; });
        findings.push_back(std::move(finding));
    }
    return findings;
}

} // namespace

Expected<Findings> superWeightCandidate(const RuleContext &context)
{
    const double input = context.thresholds("super_weight_candidate.input"),
                 output = context.thresholds("super_weight_candidate.output");
    const FindingRule rule{"mlp_down: max abs input > " + plainNumber(input) + " at (i,k) and max abs output > " +
                               plainNumber(output) + " at (m,j)",
                           "max_abs_output", ">", "", output};
    Findings findings;
    for (const OutputExtremes &consumer : context.weights.outputs) {
        const auto everywhere = [](std::size_t) { return true; };
        const std::int64_t in = largestUnit(context.weights.inputs, everywhere), out = largestUnit(consumer.units, everywhere);
        if (in < 0 || out < 0)
            continue;
        const UnitExtreme &x = context.weights.inputs[static_cast<std::size_t>(in)],
                          &y = consumer.units[static_cast<std::size_t>(out)];
        const double weight = consumer.weightRows(static_cast<std::size_t>(out), static_cast<std::size_t>(x.channel));
        Finding finding = findingOn(context, "super_weight_candidate", rule, {}, y.value);
        finding.id = findingId("super_weight_candidate", "", consumer.consumer, {y.channel, x.channel});
        finding.where = {{"consumer", consumer.consumer},
                         {"row", y.channel},
                         {"column", x.channel},
                         {"weight", weight},
                         {"share", x.value * weight / y.value}};
        finding.sharing = "row";
        finding.stability = context.draws.share([&](std::size_t draw) {
            const auto drawn = [&](std::size_t u) { return context.draws.weight(draw, u) > 0; };
            const std::int64_t i = largestUnit(context.weights.inputs, drawn), o = largestUnit(consumer.units, drawn);
            return i >= 0 && o >= 0 && context.weights.inputs[static_cast<std::size_t>(i)].channel == x.channel &&
                   consumer.units[static_cast<std::size_t>(o)].channel == y.channel;
        });
        findings.push_back(std::move(finding));
    }
    return findings;
}

Expected<Findings> weightOutlier(const RuleContext &context)
{
    const double sigma = context.thresholds("weight_outlier.sigma"), ratio = context.thresholds("weight_outlier.ratio");
    const FindingRule ofRow{"abs W >= " + plainNumber(sigma) + " row standard deviations", "row_deviations", ">=", "", sigma};
    const FindingRule ofColumn{"column maximum >= " + plainNumber(ratio) + " x the median column maximum", "column_max_to_median",
                               ">=", "", ratio};
    Findings findings;
    for (const WeightOutlier &outlier : context.weights.outliers) {
        Finding finding = findingOn(context, "weight_outlier", outlier.wholeColumn ? ofColumn : ofRow, {}, outlier.ratio);
        finding.id = findingId("weight_outlier", "", outlier.consumer, {outlier.row, outlier.column});
        finding.where = {
            {"consumer", outlier.consumer}, {"row", outlier.row}, {"column", outlier.column}, {"weight", outlier.weight}};
        finding.sharing = "row";
        finding.stability = context.draws.share([](std::size_t) { return true; }); // weights do not depend on the rows drawn
        findings.push_back(std::move(finding));
    }
    return findings;
}

Expected<Findings> sensitiveChannel(const RuleContext &context)
{
    const double top = context.thresholds("sensitive_channel.top"), outside = context.thresholds("sensitive_channel.outside");
    const FindingRule rule{"top " + plainNumber(top) + " of the channels by contribution, not in the top " +
                               plainNumber(outside) + " by max_abs",
                           "contribution", "top", "", top};
    const Select select = [&](const std::vector<double> &contribution, const std::vector<double> &maxAbs) {
        Flags flags = topFlags(contribution, top);
        const Flags large = topFlags(maxAbs, outside);
        for (std::size_t k = 0; k < flags.size(); ++k)
            flags[k] = flags[k] && !large[k];
        return flags;
    };
    return selectedChannels(context, "sensitive_channel", rule, select,
                            [](std::size_t k, const auto &contribution) { return contribution[k]; });
}

Expected<Findings> largeAndHarmless(const RuleContext &context)
{
    const double top = context.thresholds("large_and_harmless.top");
    const FindingRule rule{"top " + plainNumber(top) + " of the channels by max_abs, contribution below the median", "max_abs",
                           "top", "", top};
    const Select select = [&](const std::vector<double> &contribution, const std::vector<double> &maxAbs) {
        Flags flags = topFlags(maxAbs, top);
        const double median = lowerMedian(contribution);
        for (std::size_t k = 0; k < flags.size(); ++k)
            flags[k] = flags[k] && contribution[k] < median;
        return flags;
    };
    const auto &maxAbs = context.statistics.channel.maxAbs;
    return selectedChannels(context, "large_and_harmless", rule, select, [&](std::size_t k, const auto &) { return maxAbs[k]; });
}

} // namespace planish
