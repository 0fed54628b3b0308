#include "core/run/run_intervene.h"

#include <algorithm>

#include "core/io/nearest.h"

namespace planish {

namespace {

Expected<InterventionTarget> findingTarget(const Engine &engine, const Opened &opened, const EdgeId &edge,
                                           const InterveneRequest &request, std::stop_token stop)
{
    AnalyzeRequest analyze;
    analyze.edges = {edge.value};
    analyze.rows = request.rows;
    auto analysis = engine.analyze(opened, analyze, stop, {});
    if (!analysis)
        return tl::make_unexpected(analysis.error());
    std::vector<std::string> ids;
    for (const EdgeAnalysis &each : analysis->edges) {
        for (const Finding &finding : each.findings) {
            if (finding.id == request.target.name)
                return targetOf(finding);
            ids.push_back(finding.id);
        }
    }
    return usageError(edge.value, "there is no finding " + request.target.name,
                      ids.empty() ? "an edge with findings" : nearestText(request.target.name, ids));
}

Expected<Intervention> interveneOn(const Engine &engine, const Opened &opened, const EdgeId &edge,
                                   const InterveneRequest &request, std::stop_token stop, const ProgressSink &progress)
{
    InterventionTarget target = request.target;
    if (target.kind == TargetKind::Finding) {
        auto found = findingTarget(engine, opened, edge, request, stop);
        if (!found)
            return tl::make_unexpected(found.error());
        target = std::move(*found);
    }
    EvaluateOptions options;
    options.rows = request.rows;
    auto data = engine.edgeData(opened, edge, options, stop);
    if (!data)
        return tl::make_unexpected(data.error());
    return intervene(**data, target, request.action, request.options, stop, progress);
}

} // namespace

Expected<std::vector<Intervention>> runIntervene(const Engine &engine, const Opened &opened, const InterveneRequest &request,
                                                 std::stop_token stop, const ProgressSink &progress)
{
    auto edges = matchEdges(opened.graph, request.edges);
    if (!edges)
        return tl::make_unexpected(edges.error());
    std::vector<Intervention> interventions;
    for (const EdgeId &edge : *edges) {
        auto intervention = interveneOn(engine, opened, edge, request, stop, progress);
        if (!intervention)
            return tl::make_unexpected(intervention.error());
        interventions.push_back(std::move(*intervention));
    }
    return interventions;
}

} // namespace planish
