// JSON of sweeps and comparisons: planish.sweep/1 and planish.comparison/1.
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/run/envelope.h"

namespace planish {
namespace {

using Json = nlohmann::ordered_json;

Json candidateJson(const Candidate &candidate)
{
    Json chain = Json::array();
    for (const ChainMember &member : candidate.chain) {
        Json params = Json::object();
        for (const auto &[name, value] : member.set)
            params[name] = value;
        chain.push_back({{"method", member.method}, {"params", std::move(params)}});
    }
    Json json{{"name", candidate.name},
              {"chain", std::move(chain)},
              {"seed", candidate.seed},
              {"act", canonicalText(candidate.act, Role::Activation)},
              {"weight", canonicalText(candidate.weight, Role::Weight)}};
    if (candidate.kv)
        json["kv"] = canonicalText(*candidate.kv, Role::Activation);
    if (!candidate.edges.empty())
        json["edges"] = candidate.edges;
    return json;
}

Json edgeJson(const EdgeComparison &edge)
{
    Json json{{"edge", edge.edge.value}, {"evaluations", Json::array()}, {"ranking", Json::array()}, {"pareto", Json::array()}};
    for (const Evaluation &evaluation : edge.evaluations)
        json["evaluations"].push_back(toJson(evaluation));
    for (const RankEntry &entry : edge.ranking) {
        Json ranked{{"name", entry.name}, {"tie", entry.tie}};
        if (!entry.reason.empty())
            ranked["reason"] = entry.reason;
        json["ranking"].push_back(std::move(ranked));
    }
    for (const std::size_t index : edge.pareto)
        json["pareto"].push_back(edge.evaluations[index].candidate);
    json["skipped"] = edge.skipped.empty() ? Json(nullptr) : Json(edge.skipped);
    return json;
}

/// Totals of a candidate that was ok nowhere are not defined; all such nulls share one note.
Json totalsJson(const std::vector<CandidateTotal> &totals, Json &notes)
{
    Json json = Json::array();
    std::size_t undefined = 0, first = 0;
    for (std::size_t i = 0; i < totals.size(); ++i) {
        const CandidateTotal &total = totals[i];
        const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
        if (!std::isfinite(total.meanRelative) && undefined++ == 0)
            first = i;
        json.push_back({{"name", total.name},
                        {"mean_relative", number(total.meanRelative)},
                        {"geometric_gain", number(total.geometricGain)},
                        {"wins", total.wins},
                        {"online_flops", number(total.onlineFlops)},
                        {"weight_bits", number(total.weightBits)}});
    }
    if (undefined > 0)
        notes.push_back({{"field", "totals.mean_relative"}, {"count", undefined}, {"first", first}});
    return json;
}

} // namespace

nlohmann::ordered_json toJson(const Sweep &sweep)
{
    Json json{
        {"schema", "planish.sweep/1"}, {"parameter", sweep.parameter}, {"values", sweep.values}, {"evaluations", Json::array()}};
    for (const Evaluation &evaluation : sweep.evaluations)
        json["evaluations"].push_back(toJson(evaluation));
    json["best"] = {{"index", sweep.tie.empty() ? Json(nullptr) : Json(sweep.best)}, {"tie", sweep.tie}};
    return json;
}

nlohmann::ordered_json toJson(const Comparison &comparison)
{
    Json json{{"schema", "planish.comparison/1"}, {"candidates", Json::array()}, {"edges", Json::array()}}, notes = Json::array();
    for (const Candidate &candidate : comparison.candidates)
        json["candidates"].push_back(candidateJson(candidate));
    for (const EdgeComparison &edge : comparison.edges)
        json["edges"].push_back(edgeJson(edge));
    json["totals"] = totalsJson(comparison.totals, notes);
    json["notes"] = std::move(notes);
    return json;
}

} // namespace planish
