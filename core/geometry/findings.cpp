#include "core/geometry/findings.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "core/geometry/finding_rules.h"
#include "core/measure/magnitude_bins.h"

namespace planish {

namespace {

// A kind that fires more often than this is a property of the edge, not a list; the largest are kept.
constexpr std::size_t kMostPerKind = 1000;

// Order of the table of evaluation.md 3.
constexpr Rule kRules[] = {valueOutlier,         persistentAbsolute, persistentRelative, rareToken,       massiveActivation,
                           superWeightCandidate, asymmetricChannel,  deadChannel,        constantChannel, deadInCalibration,
                           weightOutlier,        sensitiveChannel,   largeAndHarmless,   nonFinite,       upcastBf16,
                           lossyFilter,          duplicateRows};

std::int64_t placeOf(const Finding &finding, const char *name)
{
    const auto found = finding.where.find(name);
    return found != finding.where.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
}

std::int64_t columnOf(const Finding &finding)
{
    return std::max(placeOf(finding, "channel"), placeOf(finding, "column"));
}

void orderInsideKind(Findings &findings)
{
    std::stable_sort(findings.begin(), findings.end(), [](const Finding &a, const Finding &b) {
        if (std::abs(a.value) != std::abs(b.value))
            return std::abs(a.value) > std::abs(b.value);
        return std::pair(placeOf(a, "row"), columnOf(a)) < std::pair(placeOf(b, "row"), columnOf(b));
    });
    if (findings.size() > kMostPerKind)
        findings.resize(kMostPerKind);
}

} // namespace

Expected<std::vector<Finding>> findOn(const Opened &opened, const Edge &edge, const Statistics &statistics,
                                      const RuleThresholds &thresholds, const RowRequest &rows, std::stop_token stop,
                                      const EdgeWeights *weights, std::uint64_t seed)
{
    const DumpEdge *dumpEdge = opened.dump->info().findEdge(edge.id);
    if (!dumpEdge)
        return dataError(edge.id.value, "the dump has no such edge", "an edge of " + opened.dump->info().file);
    EdgeWeights scanned;
    if (!weights) {
        auto found = scanEdgeWeights(opened, edge, statistics, thresholds, rows, stop);
        if (!found)
            return tl::make_unexpected(found.error());
        scanned = std::move(*found);
    }
    const BootstrapDraws draws(statistics, seed, edge.id.value);
    const RuleContext context{opened, edge, *dumpEdge, statistics, thresholds, weights ? *weights : scanned, draws, stop};
    Findings all;
    for (Rule rule : kRules) {
        if (stop.stop_requested())
            return cancelled(edge.id.value);
        auto found = rule(context);
        if (!found)
            return found;
        orderInsideKind(*found);
        std::move(found->begin(), found->end(), std::back_inserter(all));
    }
    return all;
}

std::size_t RuleContext::indexOfRow(std::int64_t fileRow) const
{
    const auto &rows = statistics.token.row;
    return static_cast<std::size_t>(std::lower_bound(rows.begin(), rows.end(), fileRow) - rows.begin());
}

std::optional<double> RuleContext::shareWithRow(std::int64_t fileRow, const std::function<bool(std::size_t draw)> &also) const
{
    const std::size_t index = indexOfRow(fileRow);
    return draws.share([&](std::size_t draw) { return draws.hasRow(draw, index) && (!also || also(draw)); });
}

std::string findingId(const std::string &kind, const std::string &scope, const std::string &subject,
                      const std::vector<std::int64_t> &places)
{
    std::string id = kind + (scope.empty() ? "" : "." + scope) + "@" + subject + ":";
    for (std::size_t i = 0; i < places.size(); ++i)
        id.append(i > 0 ? "," : "").append(std::to_string(places[i]));
    return id;
}

Finding findingOn(const RuleContext &context, const std::string &kind, FindingRule rule, const std::vector<std::int64_t> &places,
                  double value)
{
    Finding finding;
    finding.kind = kind;
    finding.id = findingId(kind, rule.scope, context.edge.id.value, places);
    finding.where = nlohmann::json::object();
    finding.rule = std::move(rule);
    finding.value = value;
    return finding;
}

std::string plainNumber(double value)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

std::optional<double> asymmetryOf(double minimum, double maximum)
{
    if (!(maximum > minimum))
        return std::nullopt;
    return (maximum + minimum) / (maximum - minimum);
}

double lowerMedian(std::vector<double> values)
{
    return medianMagnitude(std::move(values)).value_or(0.0);
}

std::vector<std::uint8_t> topFlags(const std::vector<double> &values, double share)
{
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
    // The small step keeps .01 x 100 = 1.0000000000000002 or its like from counting one channel more.
    const auto count = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size()) - 1e-9));
    std::vector<std::uint8_t> flags(values.size(), 0);
    for (std::size_t i = 0; i < std::min(count, order.size()); ++i)
        flags[order[i]] = 1;
    return flags;
}

} // namespace planish
