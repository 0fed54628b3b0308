// Engine::edgeData and Engine::evaluate: edges matched, loaded once, one candidate evaluated on each.
#include "core/evaluate/edge_data.h"
#include "core/run/engine_state.h"
#include "core/run/run_edges.h"

namespace planish {
namespace {

/// What of the options decides the data of an edge.
std::string dataKey(const Opened &opened, const EdgeId &edge, const EvaluateOptions &options)
{
    const RowRequest &rows = options.rows;
    std::string key = opened.dump->info().file + "\n" + opened.weightsPath + "\n" + edge.value;
    for (const double value :
         {rows.calibration, static_cast<double>(rows.budget), static_cast<double>(rows.phase), options.partial ? 1.0 : 0.0})
        key += "\n" + std::to_string(value);
    key += "\n" + std::to_string(rows.splitSeed);
    for (const auto *list : {&rows.skipPositions, &rows.skipIds}) {
        key += "\n";
        for (const std::int32_t item : *list)
            key += std::to_string(item) + ",";
    }
    for (const auto *list : {&rows.fitRows, &rows.scoreRows}) {
        key += "\n";
        for (const RowRange &range : *list)
            key += std::to_string(range.first) + ":" + std::to_string(range.second) + ",";
    }
    return key;
}

} // namespace

Expected<std::shared_ptr<const EdgeData>> Engine::edgeData(const Opened &opened, const EdgeId &edge,
                                                           const EvaluateOptions &options, std::stop_token stop) const
{
    const Edge *found = opened.graph.find(edge);
    if (!found)
        return usageError(edge.value, "no such edge in " + opened.dump->info().file, "an edge that `planish-cli info` lists");
    const std::string key = dataKey(opened, edge, options);
    {
        const std::scoped_lock lock(m_state->mutex);
        for (auto entry = m_state->recent.begin(); entry != m_state->recent.end(); ++entry) {
            const EdgeParts &parts = entry->data->parts();
            if (entry->key != key || parts.dump != opened.dump ||
                parts.weights != opened.weights) // a file opened anew is read anew
                continue;
            m_state->recent.splice(m_state->recent.begin(), m_state->recent, entry);
            return m_state->recent.front().data;
        }
    }
    auto data = loadEdgeData(opened, *found, options, m_backend, stop);
    if (!data)
        return data;
    const std::scoped_lock lock(m_state->mutex);
    m_state->recent.push_front({key, *data});
    if (m_state->recent.size() > m_state->capacity)
        m_state->recent.pop_back();
    return data;
}

bool isCallersFault(const Error &error)
{
    return error.code == ErrorCode::Usage || error.code == ErrorCode::Cancelled || error.code == ErrorCode::Machine;
}

Evaluation refusedOn(const Opened &opened, const EdgeId &edge, const Candidate &candidate, const Error &error)
{
    Evaluation evaluation;
    evaluation.file = opened.dump->info().file;
    evaluation.edge = edge;
    evaluation.status = EvaluationStatus::Refused;
    evaluation.reason = toText(error);
    evaluation.rule = error.rule;
    evaluation.candidate = candidate.name;
    for (const ChainMember &member : candidate.chain)
        evaluation.chain.push_back({member.method, {}, {}});
    evaluation.seed = candidate.seed;
    evaluation.act = candidate.act;
    evaluation.weight = candidate.weight;
    evaluation.kv = candidate.kv;
    return evaluation;
}

Expected<std::vector<Evaluation>> Engine::evaluate(const Opened &opened, const EvaluateRequest &request, std::stop_token stop,
                                                   const ProgressSink &progress) const
{
    auto edges = matchEdges(opened.graph, request.edges);
    if (!edges)
        return tl::make_unexpected(edges.error());
    std::vector<Evaluation> evaluations;
    for (std::size_t i = 0; i < edges->size(); ++i) {
        if (stop.stop_requested())
            return cancelled("evaluate");
        if (progress)
            progress({.stage = "evaluate",
                      .done = static_cast<double>(i),
                      .total = static_cast<double>(edges->size()),
                      .unit = "edges"});
        auto data = edgeData(opened, (*edges)[i], request.options, stop);
        if (!data) {
            if (edges->size() == 1 || isCallersFault(data.error()))
                return tl::make_unexpected(data.error());
            evaluations.push_back(refusedOn(opened, (*edges)[i], request.candidate, data.error()));
            continue;
        }
        auto evaluation = evaluateCandidate(opened, **data, request.candidate, request.options, stop, progress);
        if (!evaluation)
            return tl::make_unexpected(evaluation.error());
        evaluations.push_back(std::move(*evaluation));
    }
    return evaluations;
}

} // namespace planish
