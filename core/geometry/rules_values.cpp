// Rules about single values: value_outlier, massive_activation.
#include <algorithm>
#include <cmath>

#include "core/geometry/finding_rules.h"
#include "core/measure/magnitude_bins.h"

namespace planish {

namespace {

constexpr std::size_t kBatch = 256;

struct Spike {
    std::int64_t row, channel;
    double value;
};

// All elements with |x| >= bound and > floor: only rows whose maximum passes are read.
Expected<std::vector<Spike>> spikesOf(const RuleContext &context, double floor, double bound)
{
    std::vector<std::int64_t> rows;
    for (std::size_t r = 0; r < context.statistics.token.row.size(); ++r)
        if (context.statistics.token.maxAbs[r] > floor && context.statistics.token.maxAbs[r] >= bound)
            rows.push_back(context.statistics.token.row[r]);
    std::vector<Spike> spikes;
    for (std::size_t at = 0; at < rows.size(); at += kBatch) {
        if (context.stop.stop_requested())
            return cancelled(context.edge.id.value);
        const std::span batch(rows.data() + at, std::min(kBatch, rows.size() - at));
        auto values = context.opened.dump->readRows(context.dumpEdge, batch);
        if (!values)
            return tl::make_unexpected(values.error());
        for (std::size_t r = 0; r < values->rows(); ++r)
            for (std::size_t k = 0; k < values->cols(); ++k)
                if (const double x = (*values)(r, k); std::isfinite(x) && std::abs(x) > floor && std::abs(x) >= bound)
                    spikes.push_back({batch[r], static_cast<std::int64_t>(k), x});
    }
    return spikes;
}

double mostAboveHalf(double share, double rows, double channels)
{
    return std::max(1.0, share * rows * channels);
}

} // namespace

Expected<Findings> valueOutlier(const RuleContext &context)
{
    const Statistics &s = context.statistics;
    const double ratio = context.thresholds("value_outlier.ratio"), share = context.thresholds("value_outlier.share");
    const auto channels = static_cast<double>(s.channels);
    const auto found = s.maxToMedian();
    if (!found || *found < ratio ||
        static_cast<double>(s.aboveHalf) > mostAboveHalf(share, static_cast<double>(s.tokens), channels))
        return Findings{};
    FindingRule rule{"max_to_median >= " + plainNumber(ratio) + " and at most max(1, " + plainNumber(share) +
                         " M K) elements above half the maximum",
                     "max_to_median", ">=", "", ratio};
    Finding finding = findingOn(context, "value_outlier", rule, {s.argmaxRow, s.argmaxChannel}, *found);
    finding.where = {{"row", s.argmaxRow}, {"channel", s.argmaxChannel}, {"value", s.argmaxValue}};
    finding.sharing = "tensor";
    // A draw that holds the row holds the maximum; what moves is the median and the count beside it.
    finding.stability = context.shareWithRow(s.argmaxRow, [&](std::size_t draw) {
        const double median = context.draws.median(draw);
        const double above = context.draws.sum(
            draw, [&](const UnitSums &unit) { return static_cast<double>(countAbove(s.kind, unit.histogram, 0.5 * s.maxAbs)); });
        return median > 0.0 && s.maxAbs / median >= ratio &&
               above <= std::max(mostAboveHalf(share, static_cast<double>(context.draws.rows(draw)), channels),
                                 static_cast<double>(context.draws.weight(
                                     draw, static_cast<std::size_t>(s.rowUnit[context.indexOfRow(s.argmaxRow)]))));
    });
    return Findings{finding};
}

Expected<Findings> massiveActivation(const RuleContext &context)
{
    const Statistics &s = context.statistics;
    if (context.edge.site != "residual" || !(s.medianAbs > 0.0))
        return Findings{};
    const double floor = context.thresholds("massive_activation.floor"), hard = context.thresholds("massive_activation.ratio");
    const double soft = std::min(hard, context.thresholds("massive_activation.soft"));
    auto spikes = spikesOf(context, floor, soft * s.medianAbs);
    if (!spikes)
        return tl::make_unexpected(spikes.error());
    Findings findings;
    for (const Spike &spike : *spikes) {
        const double ratio = std::abs(spike.value) / s.medianAbs;
        const bool isSoft = ratio < hard;
        const double bound = isSoft ? soft : hard;
        FindingRule rule{"residual: abs x > " + plainNumber(floor) + " and >= " + plainNumber(bound) + " x median",
                         "abs_to_median", ">=", "", bound};
        Finding finding = findingOn(context, "massive_activation", rule, {spike.row, spike.channel}, spike.value);
        finding.where = {{"row", spike.row}, {"channel", spike.channel}, {"value", spike.value}, {"ratio", ratio}};
        finding.sharing = "tensor";
        finding.soft = isSoft;
        finding.stability = context.shareWithRow(spike.row, [&](std::size_t draw) {
            const double median = context.draws.median(draw);
            return median > 0.0 && std::abs(spike.value) >= soft * median;
        });
        findings.push_back(std::move(finding));
    }
    return findings;
}

} // namespace planish
