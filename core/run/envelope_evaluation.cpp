// JSON of evaluations: planish.evaluation/1 exactly as cli.md shows it. What is not defined is null with a note.
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/run/envelope.h"
#include "core/run/field_json.h"

namespace planish {
namespace {

using Json = nlohmann::ordered_json;

Json text(const std::string &value)
{
    return value.empty() ? Json(nullptr) : Json(value);
}

/// A number, or null with a note that names the field.
Json number(double value, const char *field, Json &notes)
{
    if (std::isfinite(value))
        return value;
    notes.push_back(std::string(field) + ": not defined or infinite");
    return nullptr;
}

Json tokenJson(const WorstToken &worst, const char *valueName)
{
    if (worst.row < 0)
        return nullptr;
    return {{"row", worst.row},
            {"request", worst.request},
            {"position", worst.position},
            {"text", text(worst.text)},
            {valueName, worst.value}};
}

Json channelJson(const WorstChannel &worst, const char *valueName)
{
    if (worst.stacked < 0)
        return nullptr;
    return {{"consumer", worst.consumer}, {"channel", worst.channel}, {"stacked", worst.stacked}, {valueName, worst.value}};
}

Json equivalenceJson(const std::optional<Equivalence> &e)
{
    if (!e)
        return nullptr;
    return {{"relative_frobenius", e->relativeFrobenius},
            {"max_abs", e->maxAbs},
            {"max_rel", e->maxRel},
            {"floor", e->floor},
            {"passed", e->passed},
            {"threshold", e->threshold},
            {"rows", e->rows},
            {"worst_consumer", text(e->worstConsumer)},
            {"stored_dtype", text(e->storedDtype)},
            {"stored_relative_frobenius", e->storedRelativeFrobenius},
            {"stored_passed", e->storedPassed}};
}

Json tensorJson(const std::optional<TensorError> &error)
{
    if (!error)
        return nullptr;
    return {{"relative_frobenius", error->relativeFrobenius},
            {"zeroed_fraction", error->zeroedFraction},
            {"zeroed_energy", error->zeroedEnergy},
            {"saturated_fraction", error->saturatedFraction}};
}

Json uncertaintyJson(const std::optional<Uncertainty> &u)
{
    if (!u)
        return nullptr;
    return {{"unit", u->unit}, {"units", u->units}, {"standard_error", u->standardError}, {"low", u->low}, {"high", u->high}};
}

Json intervalJson(const std::optional<Interval> &interval)
{
    if (!interval)
        return nullptr;
    return {{"low", interval->low},
            {"high", interval->high},
            {"confidence", interval->confidence},
            {"rows", interval->rows},
            {"outputs", interval->outputs}};
}

Json termsJson(const std::optional<ErrorTerms> &terms)
{
    if (!terms)
        return nullptr;
    return {{"activation_only", terms->activationOnly},
            {"weight_only", terms->weightOnly},
            {"cross", terms->cross},
            {"interaction", terms->interaction}};
}

Json conditioningJson(const std::optional<Conditioning> &c, Json &notes)
{
    if (!c)
        return nullptr;
    return {{"kappa", number(c->kappa, "conditioning.kappa", notes)},
            {"kappa_non_diagonal", number(c->kappaNonDiagonal, "conditioning.kappa_non_diagonal", notes)},
            {"kappa_is_bound", c->kappaIsBound},
            {"sigma_min", c->sigmaMin},
            {"sigma_max", number(c->sigmaMax, "conditioning.sigma_max", notes)},
            {"scale_min", c->scaleMin},
            {"scale_max", c->scaleMax},
            {"inverse_residual", number(c->inverseResidual, "conditioning.inverse_residual", notes)},
            {"orthogonality_residual", number(c->orthogonalityResidual, "conditioning.orthogonality_residual", notes)}};
}

Json geometryJson(const std::optional<GeometryAfter> &g, Json &notes)
{
    if (!g)
        return nullptr;
    Json ratio = g->maxToMedian;
    if (g->zeroMedian) {
        ratio = nullptr;
        notes.push_back("geometry_after.max_to_median: the median is 0");
    }
    return {{"max_abs", g->maxAbs}, {"max_to_median", ratio}, {"mean_incoherence", g->meanIncoherence}};
}

Json exceptionsJson(const std::optional<ExceptionReport> &report)
{
    if (!report)
        return nullptr;
    Json json = Json::object();
    if (report->perRequest.empty()) {
        json["columns"] = report->columns;
    } else {
        json["per_request"] = Json::array();
        for (const auto &[request, columns] : report->perRequest)
            json["per_request"].push_back({{"request", request}, {"columns", columns}});
    }
    json["share"] = report->share;
    return json;
}

Json ledgerJson(const Ledger &ledger)
{
    return {{"online_flops_per_token", ledger.onlineFlopsPerToken},
            {"online_bytes_per_token", ledger.onlineBytesPerToken},
            {"launches", ledger.launches},
            {"metadata_bytes", ledger.metadataBytes},
            {"weight_bits", ledger.weightBits},
            {"fused_into", ledger.fusedInto},
            {"online", ledger.online}};
}

Json rowsJson(const RowCounts &rows)
{
    Json json{{"calibration", rows.calibration},
              {"validation", rows.validation},
              {"held_out", rows.heldOut},
              {"sealed", rows.sealed},
              {"available", rows.available}};
    if (rows.fit)
        json["fit"] = *rows.fit;
    if (rows.score)
        json["score"] = *rows.score;
    return json;
}

/// method, params and fitted of a single member; of a chain with the member's key in front.
void addChain(Json &json, const Evaluation &e)
{
    Json chain = Json::array(), params = Json::object(), fitted = Json::object();
    std::string method;
    for (std::size_t i = 0; i < e.chain.size(); ++i) {
        const FittedMember &member = e.chain[i];
        const auto repeats = std::count_if(e.chain.begin(), e.chain.end(),
                                           [&](const FittedMember &other) { return other.method == member.method; });
        const std::string prefix = e.chain.size() == 1 ? "" : (repeats > 1 ? std::to_string(i + 1) : member.method) + ".";
        chain.push_back(
            {{"method", member.method}, {"params", fieldsJson(member.params)}, {"fitted", fieldsJson(member.fitted)}});
        for (const auto &[name, value] : member.params)
            params[prefix + name] = fieldJson(value);
        for (const auto &[name, value] : member.fitted)
            fitted[prefix + name] = fieldJson(value);
        method += (method.empty() ? "" : "+") + member.method;
    }
    json["chain"] = std::move(chain);
    json["method"] = method;
    json["params"] = std::move(params);
    json["fitted"] = std::move(fitted);
}

Json trainingJson(const TrainingRecord &t)
{
    return {{"optimizer", t.optimizer},
            {"betas", t.betas},
            {"lr", t.lr},
            {"schedule", t.schedule},
            {"steps", t.steps},
            {"batch_rows", t.batchRows},
            {"ste", t.ste},
            {"detached", t.detached},
            {"objective", t.objective},
            {"init", t.init},
            {"best_step", t.bestStep},
            {"start_objective", t.startObjective},
            {"final_objective", t.finalObjective},
            {"seconds", t.seconds},
            {"curve", t.curve}};
}

Json breakdownJson(const Evaluation &e)
{
    Json json = Json::object();
    if (e.sums) {
        const ResidualSums &sums = e.sums->sums;
        json["rows"] = e.sums->fileRows;
        json["row_error"] = sums.rowError;
        json["row_reference"] = sums.rowReference;
        json["row_activation_only"] = sums.rowActivationOnly;
        json["row_weight_only"] = sums.rowWeightOnly;
        json["row_cross"] = sums.rowCross;
        json["output_error"] = sums.outputError;
        json["output_reference"] = sums.outputReference;
    }
    json["search"] = Json::array();
    for (const SearchEntry &entry : e.searchLog)
        json["search"].push_back({{"label", entry.label},
                                  {"parameter", entry.parameter},
                                  {"loss", std::isfinite(entry.loss) ? Json(entry.loss) : Json(nullptr)},
                                  {"chosen", entry.chosen}});
    return json;
}

void addHead(Json &json, const Evaluation &e)
{
    json["schema"] = "planish.evaluation/1";
    json["file"] = e.file;
    json["edge"] = e.edge.value;
    json["consumers"] = e.consumers;
    json["status"] = e.status == EvaluationStatus::Ok ? "ok" : e.status == EvaluationStatus::Refused ? "refused" : "failed";
    json["reason"] = text(e.reason);
    json["rule"] = text(e.rule);
    json["candidate"] = e.candidate;
    addChain(json, e);
    json["seed"] = e.seed;
    json["act"] = canonicalText(e.act, Role::Activation);
    json["weight"] = canonicalText(e.weight, Role::Weight);
    json["kv"] = e.kv ? Json(canonicalText(*e.kv, Role::Activation)) : Json(nullptr);
    json["backend"] = e.backend;
    json["split"] = {{"unit", text(e.splitUnit)}, {"seed", e.splitSeed}};
    json["rows"] = rowsJson(e.rows);
    json["in_sample"] = e.inSample;
    json["consumers_missing"] = e.consumersMissing;
    json["analysis_only"] = e.analysisOnly;
    json["selected_on"] = text(e.selectedOn);
    json["preview"] = e.preview;
}

Json gainJson(const Evaluation &e, Json &notes)
{
    if (e.gain)
        return *e.gain;
    if (e.status == EvaluationStatus::Ok)
        notes.push_back("gain: not defined, the output error is 0");
    return nullptr;
}

} // namespace

nlohmann::ordered_json outputJson(const OutputBlock &output)
{
    Json json{
        {"relative_frobenius", output.relativeFrobenius},
        {"sqnr_db", std::isfinite(output.sqnrDb) ? Json(output.sqnrDb) : Json(nullptr)},
        {"mse", output.mse},
        {"cosine", std::isfinite(output.cosine) ? Json(output.cosine) : Json(nullptr)},
        {"max_abs", output.maxAbs},
        {"rows", {{"rms", output.rows.rms}, {"median", output.rows.median}, {"p95", output.rows.p95}, {"max", output.rows.max}}},
        {"top_rows_share", output.topRowsShare},
        {"token_dominated", output.tokenDominated},
        {"worst_token", tokenJson(output.worstToken, "relative")},
        {"worst_token_absolute", tokenJson(output.worstTokenAbsolute, "error")},
        {"worst_channel", channelJson(output.worstChannel, "relative")},
        {"worst_channel_absolute", channelJson(output.worstChannelAbsolute, "error")},
        {"per_consumer", Json::array()}};
    for (const ConsumerError &consumer : output.perConsumer)
        json["per_consumer"].push_back(
            {{"name", consumer.name},
             {"relative_frobenius",
              std::isfinite(consumer.relativeFrobenius) ? Json(consumer.relativeFrobenius) : Json(nullptr)}});
    return json;
}

nlohmann::ordered_json toJson(const Evaluation &e, bool breakdown)
{
    Json json, notes = Json::array();
    for (const std::string &note : e.notes)
        notes.push_back(note);
    addHead(json, e);
    json["fp_equivalence"] = equivalenceJson(e.equivalence);
    json["function_change"] = e.functionChange ? number(*e.functionChange, "function_change", notes) : Json(nullptr);
    json["output"] = e.output ? outputJson(*e.output) : Json(nullptr);
    if (e.output && !std::isfinite(e.output->sqnrDb))
        notes.push_back("output.sqnr_db: infinite, the output error is 0");
    json["uncertainty"] = uncertaintyJson(e.uncertainty);
    if (e.output && !e.uncertainty)
        notes.push_back("uncertainty: one row has none");
    json["interval"] = intervalJson(e.interval);
    json["gain"] = gainJson(e, notes);
    json["activation"] = tensorJson(e.activation);
    json["weight_error"] = tensorJson(e.weightError);
    json["terms"] = termsJson(e.terms);
    json["conditioning"] = conditioningJson(e.conditioning, notes);
    json["geometry_after"] = geometryJson(e.geometryAfter, notes);
    json["exceptions"] = exceptionsJson(e.exceptions);
    json["clamps"] = Json::object();
    for (const auto &[name, count] : e.clamps)
        json["clamps"][name] = count;
    json["ledger"] = ledgerJson(e.ledger);
    if (e.training)
        json["training"] = trainingJson(*e.training);
    if (breakdown)
        json["breakdown"] = breakdownJson(e);
    json["notes"] = std::move(notes);
    json["seconds"] = e.seconds;
    return json;
}

nlohmann::ordered_json toJson(const std::vector<Evaluation> &evaluations, bool breakdown)
{
    if (evaluations.size() == 1)
        return toJson(evaluations.front(), breakdown);
    Json json{{"schema", "planish.evaluations/1"}, {"evaluations", Json::array()}};
    for (const Evaluation &evaluation : evaluations)
        json["evaluations"].push_back(toJson(evaluation, breakdown));
    return json;
}

} // namespace planish
