#include "core/run/run_diff.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace planish {

namespace {

constexpr std::size_t kTopChannels = 8; // as top_channels of an analysis
// A finding that recurs in fewer bootstrap draws of its own rows can vanish without anything having changed.
constexpr double kStable = 0.95;

bool isIn(const std::vector<Finding> &findings, const std::string &id)
{
    return std::ranges::find(findings, id, &Finding::id) != findings.end();
}

/// Without a stability the rows could not be drawn again, so nothing speaks for the finding.
bool isUnstable(const Finding &finding)
{
    return !finding.stability || *finding.stability < kStable;
}

FindingChanges findingChanges(const std::vector<Finding> &before, const std::vector<Finding> &after)
{
    FindingChanges changes;
    for (const Finding &finding : after) {
        const bool kept = isIn(before, finding.id);
        (kept ? changes.kept : changes.gained).push_back(finding.id);
        if (!kept && isUnstable(finding))
            changes.withinStability.push_back(finding.id);
    }
    for (const Finding &finding : before) {
        if (isIn(after, finding.id))
            continue;
        changes.lost.push_back(finding.id);
        if (isUnstable(finding))
            changes.withinStability.push_back(finding.id);
    }
    return changes;
}

std::vector<ChannelShift> channelShift(const std::vector<double> &before, const std::vector<double> &after)
{
    if (before.size() != after.size())
        return {};
    std::vector<std::size_t> order(before.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto change = [&](std::size_t k) { return std::abs(after[k] - before[k]); };
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return change(a) > change(b); });
    std::vector<ChannelShift> shift;
    for (std::size_t i = 0; i < std::min(kTopChannels, order.size()) && change(order[i]) > 0; ++i)
        shift.push_back({static_cast<std::int64_t>(order[i]), before[order[i]], after[order[i]]});
    return shift;
}

void addFigures(const EdgeAnalysis *edge, std::size_t side, EdgeDifference &difference)
{
    if (!edge)
        return;
    difference.maxToMedian[side] = edge->statistics->maxToMedian();
    difference.c1pct[side] = edge->concentration.c1pct;
    difference.meanIncoherence[side] = edge->statistics->meanIncoherence();
}

/// Nothing of this dump matched: fine when the other one has edges.
Expected<Analysis> analyzed(const Engine &engine, const Opened &opened, const DiffRequest &request, std::stop_token stop,
                            const ProgressSink &progress)
{
    AnalyzeRequest analyze;
    analyze.edges = request.edges;
    analyze.rows = request.rows;
    Analysis none;
    none.file = opened.dump->info().file;
    if (!matchEdges(opened.graph, request.edges))
        return none;
    return engine.analyze(opened, analyze, stop, progress);
}

const EdgeAnalysis *findEdge(const Analysis &analysis, const EdgeId &id)
{
    const auto found = std::ranges::find(analysis.edges, id, &EdgeAnalysis::edge);
    return found == analysis.edges.end() ? nullptr : &*found;
}

Difference compared(const Analysis &before, const Analysis &after)
{
    Difference difference{{before.file, after.file}, {}, {}};
    for (const EdgeAnalysis &edge : before.edges)
        difference.edges.push_back(differenceOf(&edge, findEdge(after, edge.edge), difference.files));
    for (const EdgeAnalysis &edge : after.edges)
        if (!findEdge(before, edge.edge))
            difference.edges.push_back(differenceOf(nullptr, &edge, difference.files));
    for (const Analysis *analysis : {&before, &after})
        for (const Error &failure : analysis->failures)
            difference.notes.push_back(analysis->file + ": " + toText(failure));
    for (const EdgeAnalysis &edge : before.edges)
        if (const EdgeAnalysis *other = findEdge(after, edge.edge);
            other && other->statistics->channels != edge.statistics->channels)
            difference.notes.push_back(edge.edge.value + ": " + std::to_string(edge.statistics->channels) + " channels against " +
                                       std::to_string(other->statistics->channels) + ", channel_shift is empty");
    return difference;
}

} // namespace

EdgeDifference differenceOf(const EdgeAnalysis *before, const EdgeAnalysis *after, const std::string (&files)[2])
{
    EdgeDifference difference;
    difference.edge = before ? before->edge : after->edge;
    if (!before || !after)
        difference.onlyIn = files[before ? 0 : 1];
    addFigures(before, 0, difference);
    addFigures(after, 1, difference);
    if (!before || !after)
        return difference;
    difference.channelShift = channelShift(before->statistics->channel.maxAbs, after->statistics->channel.maxAbs);
    difference.findings = findingChanges(before->findings, after->findings);
    return difference;
}

Expected<Difference> runDiff(const Engine &engine, const Opened &before, const Opened &after, const DiffRequest &request,
                             std::stop_token stop, const ProgressSink &progress)
{
    if (auto edges = matchEdges(before.graph, request.edges); !edges && !matchEdges(after.graph, request.edges))
        return tl::make_unexpected(edges.error());
    auto first = analyzed(engine, before, request, stop, progress);
    if (!first)
        return tl::make_unexpected(first.error());
    auto second = analyzed(engine, after, request, stop, progress);
    if (!second)
        return tl::make_unexpected(second.error());
    return compared(*first, *second);
}

} // namespace planish
