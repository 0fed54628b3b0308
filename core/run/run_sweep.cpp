// Engine::sweep: one candidate at every value of a grid, on one edge. A picture: adopting its minimum is a choice on held-out
// rows.
#include "core/evaluate/sweep.h"

#include "core/run/run_edges.h"

namespace planish {
namespace {

/// Lowest error first among ok evaluations, and what the paired differences tie with it.
void chooseBest(Sweep &sweep)
{
    const auto ok = [](const Evaluation &e) { return e.status == EvaluationStatus::Ok && e.sums && e.output; };
    bool any = false;
    for (std::size_t i = 0; i < sweep.evaluations.size(); ++i) {
        if (!ok(sweep.evaluations[i]))
            continue;
        if (!any || sweep.evaluations[i].output->relativeFrobenius < sweep.evaluations[sweep.best].output->relativeFrobenius)
            sweep.best = i;
        any = true;
    }
    for (std::size_t i = 0; any && i < sweep.evaluations.size(); ++i)
        if (ok(sweep.evaluations[i]) &&
            (i == sweep.best ||
             pairedDifference(*sweep.evaluations[sweep.best].sums, *sweep.evaluations[i].sums, RankBy::Pooled).tied))
            sweep.tie.push_back(i);
}

} // namespace

Expected<Sweep> Engine::sweep(const Opened &opened, const SweepRequest &request, std::stop_token stop,
                              const ProgressSink &progress) const
{
    auto edges = matchEdges(opened.graph, request.base.edges);
    if (!edges)
        return tl::make_unexpected(edges.error());
    if (edges->size() != 1)
        return usageError("sweep --edge", std::to_string(edges->size()) + " edges match", "one edge; compare takes several");
    std::vector<Candidate> candidates; // all first: a value out of range is found before anything is computed
    for (const double value : request.values) {
        auto candidate = withParameter(request.base.candidate, request.parameter, value);
        if (!candidate)
            return tl::make_unexpected(candidate.error());
        candidates.push_back(std::move(*candidate));
    }
    auto data = edgeData(opened, edges->front(), request.base.options, stop);
    if (!data)
        return tl::make_unexpected(data.error());
    Sweep sweep{.parameter = request.parameter, .values = request.values};
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (stop.stop_requested())
            return cancelled("sweep");
        if (progress)
            progress({.stage = "sweep",
                      .done = static_cast<double>(i),
                      .total = static_cast<double>(candidates.size()),
                      .unit = "values"});
        auto evaluation = evaluateCandidate(opened, **data, candidates[i], request.base.options, stop, progress);
        if (!evaluation)
            return tl::make_unexpected(evaluation.error());
        sweep.evaluations.push_back(std::move(*evaluation));
    }
    chooseBest(sweep);
    return sweep;
}

} // namespace planish
