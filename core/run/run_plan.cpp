// Engine::plan: the plan room's steps on an opened file, with rank-local twins of full-width rotations where devices are asked
// for.
#include <algorithm>
#include <map>

#include "core/graph/tensor_parallel.h"
#include "core/run/engine.h"
#include "core/run/rank_local.h"
#include "core/transform/hadamard_orders.h"

namespace planish {

namespace {

bool isFullWidthHadamard(const ChainMember &member)
{
    return member.method == "hadamard";
}

/// The same candidate with one Hadamard per device; parameters that both methods know are kept.
Candidate twinOf(const Candidate &candidate, std::int64_t shard, const std::vector<std::string> &edges)
{
    Candidate twin = candidate;
    twin.name += " rank-local " + std::to_string(shard);
    twin.edges = edges;
    const MethodRow *blocks = findMethod("block_hadamard");
    for (ChainMember &member : twin.chain) {
        if (!isFullWidthHadamard(member))
            continue;
        member.method = "block_hadamard";
        std::erase_if(member.set, [&](const auto &set) {
            return set.first == "block" || std::none_of(blocks->params.begin(), blocks->params.end(),
                                                        [&](const ParamRow &row) { return row.name == set.first; });
        });
        member.set.emplace_back("block", std::to_string(shard));
    }
    return twin;
}

} // namespace

Expected<std::vector<Candidate>> withRankLocal(const ModelGraph &graph, const std::vector<Candidate> &candidates, int devices)
{
    std::vector<Candidate> all;
    for (const Candidate &candidate : candidates) {
        all.push_back(candidate);
        if (devices <= 1 || std::none_of(candidate.chain.begin(), candidate.chain.end(), isFullWidthHadamard))
            continue;
        auto edges = matchEdges(graph, candidate.edges);
        if (!edges)
            return tl::make_unexpected(edges.error());
        std::map<std::int64_t, std::vector<std::string>> byShard;
        for (const EdgeId &id : *edges) {
            const Edge *edge = graph.find(id);
            if (!edge || !isRowParallel(*edge) || edge->channels % static_cast<std::size_t>(devices) != 0)
                continue;
            const std::size_t shard = edge->channels / static_cast<std::size_t>(devices);
            if (blockHadamardFor(edge->channels, shard))
                byShard[static_cast<std::int64_t>(shard)].push_back(id.value);
        }
        for (const auto &[shard, ids] : byShard)
            all.push_back(twinOf(candidate, shard, ids));
    }
    return all;
}

Expected<Plan> Engine::plan(const Opened &opened, PlanOptions options, std::stop_token stop, const ProgressSink &progress) const
{
    options.evaluate.ledger = m_global.ledger;
    auto candidates = withRankLocal(opened.graph, options.candidates, options.evaluate.tensorParallel);
    if (!candidates)
        return tl::make_unexpected(candidates.error());
    options.candidates = std::move(*candidates);
    try {
        auto plan = makePlan(opened, options, m_backend, stop, progress);
        if (plan)
            plan->toolVersion = PLANISH_VERSION;
        return plan;
    } catch (const std::bad_alloc &) {
        return machineError("plan", "out of memory", "expected fewer rows (--rows) or a machine with more memory");
    }
}

} // namespace planish
