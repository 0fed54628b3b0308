// persistent_channel, absolute (occupancy of a fixed threshold) and relative (against the median of the edge).
#include <algorithm>
#include <cmath>


#include "core/geometry/finding_rules.h"
#include "core/measure/counted_rows.h"

namespace planish {

namespace {

Finding channelFinding(const RuleContext &context, const FindingRule &rule, std::size_t channel, double value)
{
    Finding finding = findingOn(context, "persistent_channel", rule, {static_cast<std::int64_t>(channel)}, value);
    finding.where = {{"channel", channel}};
    finding.sharing = "token";
    return finding;
}

// Channels that could be large in so many rows, by energy: the exact count then reads only these columns.
std::vector<std::size_t> candidates(const Statistics &s, double bound, double rows)
{
    std::vector<std::size_t> found;
    for (std::size_t k = 0; k < s.channels; ++k)
        if (s.channel.maxAbs[k] > bound && s.channel.energy[k] * (1.0 + 1e-9) >= rows * bound * bound)
            found.push_back(k);
    return found;
}

// Count of rows with |x| > bounds[b] for every candidate, weighted per unit: [bounds][candidates].
struct Counter {
    const RuleContext &context;
    const std::vector<std::size_t> &channels;
    std::vector<double> bounds; ///< all rows first, then one per draw
    std::vector<std::vector<double>> counts;

    double weight(std::size_t bound, std::size_t rowIndex) const
    {
        const auto &unit = context.statistics.rowUnit;
        return bound == 0 ? 1.0 : context.draws.weight(bound - 1, static_cast<std::size_t>(unit[rowIndex]));
    }
    void add(std::size_t rowIndex, const std::vector<double> &values)
    {
        for (std::size_t b = 0; b < bounds.size(); ++b) {
            const double w = weight(b, rowIndex);
            for (std::size_t c = 0; c < values.size() && w > 0.0; ++c)
                counts[b][c] += std::abs(values[c]) > bounds[b] ? w : 0.0;
        }
    }
};

Expected<void> count(Counter &counter)
{
    const CountedRows rows(*counter.context.opened.dump, counter.context.dumpEdge, counter.context.statistics.token.row);
    const std::size_t size = byteSize(rows.kind());
    std::vector<double> values(counter.channels.size());
    counter.counts.assign(counter.bounds.size(), std::vector<double>(counter.channels.size(), 0.0));
    return rows.visit(
        [&](const RawRows &raw) {
            for (std::size_t r = 0; r < raw.rows; ++r) {
                for (std::size_t c = 0; c < values.size(); ++c) {
                    widen(raw.kind, raw.data + r * raw.strideBytes + counter.channels[c] * size, 1, &values[c]);
                    if (!std::isfinite(values[c]))
                        values[c] = 0.0;
                }
                counter.add(raw.firstIndex + r, values);
            }
        },
        counter.context.stop);
}

} // namespace

Expected<Findings> persistentAbsolute(const RuleContext &context)
{
    const Statistics &s = context.statistics;
    const double threshold = context.thresholds("persistent_channel.threshold"),
                 least = context.thresholds("persistent_channel.occupancy");
    const bool atTau = threshold == s.tau;
    const ThresholdCounts *counted = s.at(threshold);
    if (!atTau && !counted)
        return dataError(context.edge.id.value, "abs x >= " + plainNumber(threshold) + " was not counted",
                         "statistics with persistent_channel.threshold among their thresholds");
    const auto &counts = atTau ? s.channel.overTauOrEqual : counted->overOrEqual;
    const FindingRule rule{"occupancy of abs x >= " + plainNumber(threshold) + " at least " + plainNumber(least), "occupancy",
                           ">=", "absolute", least};
    Findings findings;
    for (std::size_t k = 0; k < s.channels; ++k) {
        const double occupancy = static_cast<double>(counts[k]) / static_cast<double>(s.tokens);
        if (counts[k] == 0 || occupancy < least)
            continue;
        Finding finding = channelFinding(context, rule, k, occupancy);
        if (atTau)
            finding.stability = context.draws.share([&](std::size_t draw) {
                const double hits =
                    context.draws.sum(draw, [&](const UnitSums &unit) { return static_cast<double>(unit.overTauOrEqual[k]); });
                return hits >= least * static_cast<double>(context.draws.rows(draw));
            });
        findings.push_back(std::move(finding));
    }
    return findings;
}

Expected<Findings> persistentRelative(const RuleContext &context)
{
    const Statistics &s = context.statistics;
    const double factor = context.thresholds("persistent_channel.factor"), share = context.thresholds("persistent_channel.rows");
    if (!(s.medianAbs > 0.0))
        return Findings{};
    const double needed = share * static_cast<double>(s.tokens);
    const auto channels = candidates(s, factor * s.medianAbs, needed);
    if (channels.empty())
        return Findings{};
    Counter counter{context, channels, {factor * s.medianAbs}, {}};
    for (std::size_t draw = 0; draw < context.draws.size(); ++draw)
        counter.bounds.push_back(factor * context.draws.median(draw));
    if (auto done = count(counter); !done)
        return tl::make_unexpected(done.error());
    const FindingRule rule{"abs x > " + plainNumber(factor) + " x median in at least " + plainNumber(share) + " of the rows",
                           "row_share", ">=", "relative", share};
    Findings findings;
    for (std::size_t c = 0; c < channels.size(); ++c) {
        if (counter.counts[0][c] < needed || counter.counts[0][c] == 0.0)
            continue;
        Finding finding = channelFinding(context, rule, channels[c], counter.counts[0][c] / static_cast<double>(s.tokens));
        finding.stability = context.draws.share([&](std::size_t draw) {
            return counter.counts[draw + 1][c] >= share * static_cast<double>(context.draws.rows(draw));
        });
        findings.push_back(std::move(finding));
    }
    return findings;
}

} // namespace planish
