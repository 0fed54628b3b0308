#include "core/run/run_sensitivity.h"

#include "core/run/run_edges.h"

namespace planish {

namespace {

Expected<void> onEdge(const Engine &engine, const Opened &opened, const AnalyzeRequest &request, const Scores &scores,
                      EdgeAnalysis &edge, std::stop_token stop)
{
    EvaluateOptions options;
    options.rows = request.rows;
    options.partial = true;
    auto data = engine.edgeData(opened, edge.edge, options, stop);
    auto sensitivity = data ? sensitivityOf(**data, edge.statistics->channel.energy, request.part,
                                            SpecPair{*request.act, *request.weight, std::nullopt}, stop)
                            : tl::make_unexpected(data.error());
    if (!sensitivity) {
        if (isCallersFault(sensitivity.error()))
            return tl::make_unexpected(sensitivity.error());
        edge.notes.push_back("sensitivity left out: " + toText(sensitivity.error()));
        return {};
    }
    if (const auto found = scores.find(edge.edge.value); found != scores.end())
        sensitivity->joined = found->second;
    for (const std::string &missing : (*data)->parts().missing)
        edge.notes.push_back("sensitivity: no weights for " + missing + "; it covers the other consumers");
    edge.sensitivity = std::make_shared<const Sensitivity>(std::move(*sensitivity));
    return {};
}

void noteUnknownScores(const Opened &opened, const Scores &scores, Analysis &analysis)
{
    for (const auto &[edge, values] : scores)
        if (!opened.graph.find({edge}))
            analysis.notes.push_back("joined scores name " + edge + ", which is no edge of " + analysis.file);
}

} // namespace

Expected<void> addSensitivity(const Engine &engine, const Opened &opened, const AnalyzeRequest &request, Analysis &analysis,
                              std::stop_token stop, const ProgressSink &progress)
{
    if (!request.act || !request.weight)
        return usageError("--sensitivity", "no quantizers are given", "--act SPEC --weight SPEC");
    auto scores = request.join.empty() ? Expected<Scores>(Scores()) : readScores(request.join);
    if (!scores)
        return tl::make_unexpected(scores.error());
    std::vector<std::pair<std::int64_t, EdgeDamage>> damages;
    for (std::size_t i = 0; i < analysis.edges.size(); ++i) {
        EdgeAnalysis &edge = analysis.edges[i];
        if (stop.stop_requested())
            return cancelled(analysis.file);
        if (progress)
            progress({.stage = "sensitivity",
                      .done = static_cast<double>(i),
                      .total = static_cast<double>(analysis.edges.size()),
                      .unit = "edges"});
        if (auto done = onEdge(engine, opened, request, *scores, edge, stop); !done)
            return done;
        if (edge.sensitivity)
            damages.push_back(
                {edge.layer, {edge.edge, edge.sensitivity->damage, edge.sensitivity->reference, edge.sensitivity->joined}});
    }
    analysis.layers = damageByLayer(damages);
    noteUnknownScores(opened, *scores, analysis);
    return {};
}

} // namespace planish
