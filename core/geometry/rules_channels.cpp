// Rules about whole channels that need no weights: asymmetric_channel, dead_channel, constant_channel, dead_in_calibration.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/geometry/finding_rules.h"

namespace planish {

namespace {

struct Range {
    double minimum = std::numeric_limits<double>::infinity(), maximum = -std::numeric_limits<double>::infinity();
};

Range rangeIn(const RuleContext &context, std::size_t draw, std::size_t k)
{
    Range range;
    const auto &units = context.statistics.units;
    for (std::size_t u = 0; u < units.size(); ++u)
        if (context.draws.weight(draw, u) > 0) {
            range.minimum = std::min(range.minimum, units[u].minimum[k]);
            range.maximum = std::max(range.maximum, units[u].maximum[k]);
        }
    return range;
}

Finding channelFinding(const RuleContext &context, const std::string &kind, const FindingRule &rule, std::size_t channel,
                       double value)
{
    Finding finding = findingOn(context, kind, rule, {static_cast<std::int64_t>(channel)}, value);
    finding.where = {{"channel", channel}};
    return finding;
}

} // namespace

Expected<Findings> asymmetricChannel(const RuleContext &context)
{
    const Statistics &s = context.statistics;
    const double least = context.thresholds("asymmetric_channel.asymmetry");
    const double median = lowerMedian(s.channel.maxAbs);
    std::vector<double> medianIn(context.draws.size());
    const FindingRule rule{"abs asymmetry >= " + plainNumber(least) + " and max_abs >= the median channel max_abs", "asymmetry",
                           ">=", "", least};
    Findings findings;
    for (std::size_t k = 0; k < s.channels; ++k) {
        const auto asymmetry = asymmetryOf(s.channel.minimum[k], s.channel.maximum[k]);
        if (!asymmetry || std::abs(*asymmetry) < least || s.channel.maxAbs[k] < median)
            continue;
        if (findings.empty())
            for (std::size_t draw = 0; draw < medianIn.size(); ++draw)
                medianIn[draw] = lowerMedian(context.draws.channelMaxAbs(draw));
        Finding finding = channelFinding(context, "asymmetric_channel", rule, k, *asymmetry);
        finding.sharing = "tensor";
        finding.stability = context.draws.share([&](std::size_t draw) {
            const Range range = rangeIn(context, draw, k);
            const auto there = asymmetryOf(range.minimum, range.maximum);
            return there && std::abs(*there) >= least &&
                   std::max(std::abs(range.minimum), std::abs(range.maximum)) >= medianIn[draw];
        });
        findings.push_back(std::move(finding));
    }
    return findings;
}

Expected<Findings> deadChannel(const RuleContext &context)
{
    const Statistics &s = context.statistics;
    const FindingRule rule{"max_abs = 0", "max_abs", "=", "", 0.0};
    Findings findings;
    for (std::size_t k = 0; k < s.channels; ++k) {
        if (s.channel.finite[k] == 0 || s.channel.maxAbs[k] != 0.0)
            continue;
        Finding finding = channelFinding(context, "dead_channel", rule, k, 0.0);
        finding.stability = context.draws.share([](std::size_t) { return true; }); // zero everywhere is zero in any draw
        findings.push_back(std::move(finding));
    }
    return findings;
}

Expected<Findings> constantChannel(const RuleContext &context)
{
    const Statistics &s = context.statistics;
    const FindingRule rule{"max = min, not 0", "range", "=", "", 0.0};
    Findings findings;
    for (std::size_t k = 0; k < s.channels; ++k) {
        if (s.channel.finite[k] == 0 || s.channel.maxAbs[k] == 0.0 || s.channel.maximum[k] != s.channel.minimum[k])
            continue;
        Finding finding = channelFinding(context, "constant_channel", rule, k, s.channel.maximum[k]);
        finding.stability = context.draws.share([](std::size_t) { return true; });
        findings.push_back(std::move(finding));
    }
    return findings;
}

Expected<Findings> deadInCalibration(const RuleContext &context)
{
    const auto &units = context.statistics.units;
    const bool both = std::any_of(units.begin(), units.end(), [](const UnitSums &u) { return u.calibration; }) &&
                      std::any_of(units.begin(), units.end(), [](const UnitSums &u) { return !u.calibration; });
    const FindingRule rule{"zero in all calibration rows, not in others", "calibration_max_abs", "=", "", 0.0};
    Findings findings;
    for (std::size_t k = 0; k < context.statistics.channels && both; ++k) {
        double inside = 0.0, outside = 0.0;
        for (const UnitSums &unit : units)
            (unit.calibration ? inside : outside) = std::max(unit.calibration ? inside : outside, unitMaxAbs(unit, k));
        if (inside != 0.0 || outside == 0.0)
            continue;
        Finding finding = channelFinding(context, "dead_in_calibration", rule, k, outside);
        finding.sharing = "group";
        finding.stability = context.draws.share([&](std::size_t draw) {
            for (std::size_t u = 0; u < units.size(); ++u)
                if (context.draws.weight(draw, u) > 0 && !units[u].calibration && unitMaxAbs(units[u], k) > 0.0)
                    return true;
            return false;
        });
        findings.push_back(std::move(finding));
    }
    return findings;
}

} // namespace planish
