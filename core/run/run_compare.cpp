// Engine::compare: candidates on edges, ranked in tie sets per edge, totals over the edges. Edges that cannot be evaluated are
// listed.
#include <algorithm>

#include "core/run/compare_state.h"
#include "core/run/run_edges.h"

namespace planish {
namespace {

struct CompareRun {
    const Engine &engine;
    const Opened &opened;
    const CompareRequest &request;
    std::stop_token stop;
    const ProgressSink &progress;
    CompareState state;
};

/// Candidates meant for this edge, by their globs.
Expected<std::vector<Candidate>> candidatesFor(const CompareRun &run, const EdgeId &edge)
{
    std::vector<Candidate> candidates;
    for (const Candidate &candidate : run.request.candidates) {
        if (!candidate.edges.empty()) {
            auto edges = matchEdges(run.opened.graph, candidate.edges);
            if (!edges)
                return tl::make_unexpected(edges.error());
            if (std::ranges::find(*edges, edge) == edges->end())
                continue;
        }
        candidates.push_back(candidate);
    }
    return candidates;
}

Expected<EdgeComparison> compareEdge(CompareRun &run, const EdgeId &edge)
{
    EdgeComparison comparison{.edge = edge};
    auto candidates = candidatesFor(run, edge);
    if (!candidates)
        return tl::make_unexpected(candidates.error());
    auto data = run.engine.edgeData(run.opened, edge, run.request.options, run.stop);
    if (!data) {
        if (isCallersFault(data.error()))
            return tl::make_unexpected(data.error());
        comparison.skipped = toText(data.error());
        return comparison;
    }
    for (std::size_t i = 0; i < candidates->size(); ++i) {
        if (run.stop.stop_requested())
            return cancelled("compare");
        if (run.progress)
            run.progress({.stage = "compare " + edge.value,
                          .done = static_cast<double>(i),
                          .total = static_cast<double>(candidates->size()),
                          .unit = "candidates"});
        const Candidate &candidate = (*candidates)[i];
        if (auto kept = run.state.load(edge, candidate)) {
            comparison.evaluations.push_back(std::move(*kept));
            continue;
        }
        auto evaluation = evaluateCandidate(run.opened, **data, candidate, run.request.options, run.stop, run.progress);
        if (!evaluation)
            return tl::make_unexpected(evaluation.error());
        if (auto stored = run.state.store(edge, candidate, *evaluation); !stored)
            return tl::make_unexpected(stored.error());
        comparison.evaluations.push_back(std::move(*evaluation));
    }
    comparison.ranking = rankEvaluations(comparison.evaluations, run.request.rankBy);
    comparison.pareto = paretoOf(comparison.evaluations);
    return comparison;
}

} // namespace

Expected<Comparison> Engine::compare(const Opened &opened, const CompareRequest &request, std::stop_token stop,
                                     const ProgressSink &progress) const
{
    auto edges = matchEdges(opened.graph, request.edges);
    if (!edges)
        return tl::make_unexpected(edges.error());
    auto state = CompareState::open(request.stateDir, opened, request.options, m_backend->info().key);
    if (!state)
        return tl::make_unexpected(state.error());
    CompareRun run{*this, opened, request, stop, progress, std::move(*state)};
    Comparison comparison{.candidates = request.candidates};
    for (const EdgeId &edge : *edges) {
        auto compared = compareEdge(run, edge);
        if (!compared)
            return tl::make_unexpected(compared.error());
        comparison.edges.push_back(std::move(*compared));
    }
    comparison.totals = totalsOf(comparison.candidates, comparison.edges);
    return comparison;
}

} // namespace planish
