#include <cmath>

#include "core/plan/manifest.h"
#include "core/plan/manifest_operators.h"

namespace planish {

namespace {

using Json = nlohmann::ordered_json;

Json numberOrNull(double value)
{
    return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json fieldJson(const FieldValue &value)
{
    return std::visit(
        [](const auto &item) -> Json {
            using T = std::decay_t<decltype(item)>;
            if constexpr (std::is_same_v<T, std::monostate>) {
                return nullptr;
            } else if constexpr (std::is_same_v<T, double>) {
                return numberOrNull(item);
            } else if constexpr (std::is_same_v<T, std::vector<double>>) {
                Json list = Json::array();
                for (double number : item)
                    list.push_back(numberOrNull(number));
                return list;
            } else {
                return item;
            }
        },
        value);
}

/// method, variant, params, fitted, seed of one member; the parameter `variant` has its own key.
Json memberJson(const FittedMember &member, std::uint64_t seed)
{
    Json json = {{"method", member.method}};
    Fields params = member.params;
    if (auto variant = params.find("variant"); variant != params.end()) {
        json["variant"] = fieldJson(variant->second);
        params.erase(variant);
    }
    json["params"] = manifestFields(params);
    json["fitted"] = manifestFields(member.fitted);
    json["seed"] = seed;
    return json;
}

Json equivalenceJson(const Equivalence &e)
{
    return {{"dtype", "float64"}, {"relative_frobenius", e.relativeFrobenius}, {"max_abs", e.maxAbs}, {"max_rel", e.maxRel},
            {"floor", e.floor},   {"rows", e.rows},                            {"stored_dtype", e.storedDtype},
            {"stored_dtype_relative_frobenius", e.storedRelativeFrobenius}};
}

Json conditioningJson(const Conditioning &c)
{
    Json json = {{"kappa", numberOrNull(c.kappa)}, {"kappa_non_diagonal", numberOrNull(c.kappaNonDiagonal)},
                 {"sigma_min", c.sigmaMin},        {"sigma_max", c.sigmaMax},
                 {"scale_min", c.scaleMin},        {"scale_max", c.scaleMax},
                 {"inverse_residual", c.inverseResidual}, {"orthogonality_residual", c.orthogonalityResidual}};
    if (c.kappaIsBound)
        json["kappa_is_bound"] = true;
    return json;
}

Json quantizerJson(const Candidate &candidate)
{
    Json json = {{"activation", canonicalText(candidate.act, Role::Activation)}, {"weight", canonicalText(candidate.weight, Role::Weight)}};
    static constexpr const char *kDialects[] = {"narrow", "mixed", "half", "offset", "signed", "zero", "raw", "free"};
    const NumberGrid &grid = candidate.weight.isNone() ? candidate.act.grid : candidate.weight.grid;
    json["dialect"] = isInteger(grid.format) ? Json(kDialects[static_cast<int>(grid.dialect)]) : Json("none");
    json["packed_layout"] = "none";
    if (candidate.kv)
        json["kv"] = canonicalText(*candidate.kv, Role::Activation);
    return json;
}

Json outputJsonOf(const Assignment &assignment)
{
    Json json = Json::object();
    if (assignment.alone)
        json["held_out"] = outputBlockJson(*assignment.alone);
    if (assignment.identity)
        json["identity_held_out"] = outputBlockJson(*assignment.identity);
    if (assignment.joint)
        json["joint"] = outputBlockJson(*assignment.joint);
    if (assignment.uncertainty) {
        const Uncertainty &u = *assignment.uncertainty;
        json["uncertainty"] = {{"unit", u.unit}, {"units", u.units}, {"standard_error", numberOrNull(u.standardError)},
                               {"low", numberOrNull(u.low)}, {"high", numberOrNull(u.high)}};
    }
    if (assignment.alone)
        json["token_dominated"] = assignment.alone->tokenDominated;
    return json;
}

Json onlineJson(const Assignment &assignment)
{
    Json list = Json::array();
    if (!assignment.rewrite)
        return list;
    const Transform &input = assignment.rewrite->input;
    if (!input.shift.empty() && !assignment.placement.shiftFused)
        list.push_back({{"operator", "shift"}, {"place", "input"}});
    for (std::size_t i = assignment.placement.fusedOperators; i < input.operators.size(); ++i)
        list.push_back({{"operator", nameOf(input.operators[i])}, {"place", "input"}, {"reshape", "row-major"}});
    return list;
}

void writeExtras(const Assignment &assignment, Json &entry)
{
    if (!assignment.candidate.name.empty())
        entry["x-candidate"] = assignment.candidate.name;
    if (assignment.status != "ok")
        entry["x-status"] = assignment.status;
    if (!assignment.reason.empty())
        entry["x-reason"] = assignment.reason;
    if (!assignment.notes.empty())
        entry["x-notes"] = assignment.notes;
    const Ledger &l = assignment.ledger;
    entry["x-ledger"] = {{"online_flops_per_token", l.onlineFlopsPerToken}, {"online_bytes_per_token", l.onlineBytesPerToken},
                         {"launches", l.launches}, {"metadata_bytes", l.metadataBytes}, {"weight_bits", l.weightBits},
                         {"exception_columns", l.exceptionColumns}, {"weight_elements", assignment.weightElements},
                         {"channels", assignment.channels}};
    if (assignment.rewrite && assignment.rewrite->specs)
        entry["x-specs_decide"] = true;
}

void writeMethod(const Assignment &assignment, Json &entry)
{
    std::vector<FittedMember> chain = assignment.chain;
    if (chain.empty())
        chain.push_back({"none", {}, {}});
    if (chain.size() == 1) {
        entry.update(memberJson(chain[0], assignment.candidate.seed));
        return;
    }
    Json members = Json::array();
    for (const FittedMember &member : chain)
        members.push_back(memberJson(member, assignment.candidate.seed));
    entry["chain"] = std::move(members);
}

} // namespace

nlohmann::ordered_json manifestFields(const Fields &fields)
{
    Json json = Json::object();
    for (const auto &[name, value] : fields)
        json[name] = fieldJson(value);
    return json;
}

nlohmann::ordered_json outputBlockJson(const OutputBlock &o)
{
    Json json = {{"relative_frobenius", o.relativeFrobenius}, {"sqnr_db", numberOrNull(o.sqnrDb)}, {"mse", numberOrNull(o.mse)},
                 {"cosine", numberOrNull(o.cosine)},          {"max_abs", numberOrNull(o.maxAbs)}};
    json["rows"] = {{"rms", numberOrNull(o.rows.rms)}, {"median", numberOrNull(o.rows.median)}, {"p95", numberOrNull(o.rows.p95)},
                    {"max", numberOrNull(o.rows.max)}};
    json["top_rows_share"] = numberOrNull(o.topRowsShare);
    json["token_dominated"] = o.tokenDominated;
    Json consumers = Json::array();
    for (const ConsumerError &consumer : o.perConsumer)
        consumers.push_back({{"name", consumer.name}, {"relative_frobenius", numberOrNull(consumer.relativeFrobenius)}});
    json["per_consumer"] = std::move(consumers);
    return json;
}

nlohmann::ordered_json assignmentJson(const Assignment &assignment, SideTensors &side)
{
    const std::string key = labelOf(assignment);
    const Rewrite identity;
    const Rewrite &rewrite = assignment.rewrite ? *assignment.rewrite : identity;
    Json entry;
    if (assignment.edge.value.empty())
        entry["stream"] = assignment.stream.value;
    else
        entry["edge"] = assignment.edge.value;
    writeMethod(assignment, entry);
    entry["axis"] = "channel";
    entry["ties"] = assignment.ties.empty() ? "none" : assignment.ties;
    entry["producer"] = {{"name", assignment.producerName}, {"kind", assignment.producerKind.empty() ? "unknown" : assignment.producerKind},
                         {"offset", assignment.producerOffset}};
    entry["consumers"] = assignment.consumers;
    entry["operators"] = transformJson(rewrite.input, key, side);
    writeRewriteSlots(assignment, key, entry, side);
    entry["fused_into"] = assignment.placement.fusedInto;
    entry["online"] = onlineJson(assignment);
    entry["quantizer"] = quantizerJson(assignment.candidate);
    if (assignment.equivalence)
        entry["equivalence"] = equivalenceJson(*assignment.equivalence);
    entry["function_change"] = assignment.functionChange ? numberOrNull(*assignment.functionChange) : Json(nullptr);
    entry["conditioning"] = conditioningJson(assignment.conditioning);
    entry["output"] = outputJsonOf(assignment);
    entry["dead_channels"] = {{"rule", "s = 1"}, {"count", assignment.deadChannels}};
    entry["findings"] = Json::array();
    writeExtras(assignment, entry);
    return entry;
}

std::string labelOf(const Assignment &assignment)
{
    if (!assignment.edge.value.empty())
        return assignment.edge.value;
    std::string label = assignment.stream.value;
    if (const std::size_t colon = label.find(':'); colon != std::string::npos)
        label[colon] = '.';
    return label;
}

} // namespace planish
