#include "core/run/evaluation_state.h"

#include <cmath>
#include <limits>

#include "core/evaluate/compare.h"
#include "core/run/envelope.h"
#include "core/run/field_json.h"

namespace planish {
namespace {

using Json = nlohmann::ordered_json;

double numberOf(const Json &json)
{
    return json.is_number() ? json.get<double>() : std::numeric_limits<double>::infinity();
}

std::string textOf(const Json &json)
{
    return json.is_string() ? json.get<std::string>() : std::string();
}

Json sumsState(const ErrorSums &sums)
{
    const ResidualSums &s = sums.sums;
    return {{"file_rows", sums.fileRows},
            {"row_units", sums.rowUnits},
            {"row_requests", sums.rowRequests},
            {"outputs", sums.consumerOutputs},
            {"row_error", s.rowError},
            {"row_reference", s.rowReference},
            {"output_error", s.outputError},
            {"output_reference", s.outputReference},
            {"row_activation_only", s.rowActivationOnly},
            {"row_weight_only", s.rowWeightOnly},
            {"row_cross", s.rowCross},
            {"row_dot", s.rowDot},
            {"row_estimate", s.rowEstimate},
            {"max_abs", s.maxAbs},
            {"max_row", s.maxRow},
            {"max_output", s.maxOutput}};
}

std::shared_ptr<const ErrorSums> sumsFrom(const Json &json)
{
    auto sums = std::make_shared<ErrorSums>();
    json.at("file_rows").get_to(sums->fileRows);
    json.at("row_units").get_to(sums->rowUnits);
    json.at("row_requests").get_to(sums->rowRequests);
    json.at("outputs").get_to(sums->consumerOutputs);
    ResidualSums &s = sums->sums;
    json.at("row_error").get_to(s.rowError);
    json.at("row_reference").get_to(s.rowReference);
    json.at("output_error").get_to(s.outputError);
    json.at("output_reference").get_to(s.outputReference);
    json.at("row_activation_only").get_to(s.rowActivationOnly);
    json.at("row_weight_only").get_to(s.rowWeightOnly);
    json.at("row_cross").get_to(s.rowCross);
    json.at("row_dot").get_to(s.rowDot);
    json.at("row_estimate").get_to(s.rowEstimate);
    json.at("max_abs").get_to(s.maxAbs);
    json.at("max_row").get_to(s.maxRow);
    json.at("max_output").get_to(s.maxOutput);
    return sums;
}

WorstToken tokenFrom(const Json &json, const char *valueName)
{
    if (!json.is_object())
        return {};
    return {json.at("row").get<std::int64_t>(), json.at("request").get<std::int64_t>(), json.at("position").get<std::int64_t>(),
            textOf(json.at("text")), numberOf(json.at(valueName))};
}

WorstChannel channelFrom(const Json &json, const char *valueName)
{
    if (!json.is_object())
        return {};
    return {textOf(json.at("consumer")), json.at("channel").get<std::int64_t>(), json.at("stacked").get<std::int64_t>(),
            numberOf(json.at(valueName))};
}

OutputBlock outputFrom(const Json &json)
{
    OutputBlock output;
    output.relativeFrobenius = numberOf(json.at("relative_frobenius"));
    output.sqnrDb = numberOf(json.at("sqnr_db"));
    output.mse = numberOf(json.at("mse"));
    output.cosine = numberOf(json.at("cosine"));
    output.maxAbs = numberOf(json.at("max_abs"));
    const Json &rows = json.at("rows");
    output.rows = {numberOf(rows.at("rms")), numberOf(rows.at("median")), numberOf(rows.at("p95")), numberOf(rows.at("max"))};
    output.topRowsShare = numberOf(json.at("top_rows_share"));
    output.tokenDominated = json.at("token_dominated").get<bool>();
    output.worstToken = tokenFrom(json.at("worst_token"), "relative");
    output.worstTokenAbsolute = tokenFrom(json.at("worst_token_absolute"), "error");
    output.worstChannel = channelFrom(json.at("worst_channel"), "relative");
    output.worstChannelAbsolute = channelFrom(json.at("worst_channel_absolute"), "error");
    for (const Json &consumer : json.at("per_consumer"))
        output.perConsumer.push_back({textOf(consumer.at("name")), numberOf(consumer.at("relative_frobenius"))});
    return output;
}

std::optional<TensorError> tensorFrom(const Json &json)
{
    if (!json.is_object())
        return std::nullopt;
    return TensorError{numberOf(json.at("relative_frobenius")), numberOf(json.at("zeroed_fraction")),
                       numberOf(json.at("zeroed_energy")), numberOf(json.at("saturated_fraction"))};
}

std::optional<Equivalence> equivalenceFrom(const Json &json)
{
    if (!json.is_object())
        return std::nullopt;
    Equivalence e;
    e.relativeFrobenius = numberOf(json.at("relative_frobenius"));
    e.maxAbs = numberOf(json.at("max_abs"));
    e.maxRel = numberOf(json.at("max_rel"));
    e.floor = numberOf(json.at("floor"));
    e.passed = json.at("passed").get<bool>();
    e.threshold = numberOf(json.at("threshold"));
    e.rows = json.at("rows").get<std::int64_t>();
    e.worstConsumer = textOf(json.at("worst_consumer"));
    e.storedDtype = textOf(json.at("stored_dtype"));
    e.storedRelativeFrobenius = numberOf(json.at("stored_relative_frobenius"));
    e.storedPassed = json.at("stored_passed").get<bool>();
    return e;
}

std::optional<Conditioning> conditioningFrom(const Json &json)
{
    if (!json.is_object())
        return std::nullopt;
    Conditioning c;
    c.kappa = numberOf(json.at("kappa"));
    c.kappaNonDiagonal = numberOf(json.at("kappa_non_diagonal"));
    c.kappaIsBound = json.at("kappa_is_bound").get<bool>();
    c.sigmaMin = numberOf(json.at("sigma_min"));
    c.sigmaMax = numberOf(json.at("sigma_max"));
    c.scaleMin = numberOf(json.at("scale_min"));
    c.scaleMax = numberOf(json.at("scale_max"));
    c.inverseResidual = numberOf(json.at("inverse_residual"));
    c.orthogonalityResidual = numberOf(json.at("orthogonality_residual"));
    return c;
}

std::optional<GeometryAfter> geometryFrom(const Json &json)
{
    if (!json.is_object())
        return std::nullopt;
    GeometryAfter g;
    g.maxAbs = numberOf(json.at("max_abs"));
    g.zeroMedian = json.at("max_to_median").is_null();
    g.maxToMedian = g.zeroMedian ? 0 : numberOf(json.at("max_to_median"));
    g.meanIncoherence = numberOf(json.at("mean_incoherence"));
    return g;
}

std::optional<ExceptionReport> exceptionsFrom(const Json &json)
{
    if (!json.is_object())
        return std::nullopt;
    ExceptionReport report;
    if (json.contains("columns"))
        json.at("columns").get_to(report.columns);
    if (json.contains("per_request"))
        for (const Json &entry : json.at("per_request"))
            report.perRequest.emplace_back(entry.at("request").get<std::int64_t>(),
                                           entry.at("columns").get<std::vector<std::int64_t>>());
    report.share = numberOf(json.at("share"));
    return report;
}

Ledger ledgerFrom(const Json &json)
{
    Ledger ledger;
    ledger.onlineFlopsPerToken = numberOf(json.at("online_flops_per_token"));
    ledger.onlineBytesPerToken = numberOf(json.at("online_bytes_per_token"));
    ledger.launches = numberOf(json.at("launches"));
    ledger.metadataBytes = numberOf(json.at("metadata_bytes"));
    ledger.weightBits = numberOf(json.at("weight_bits"));
    json.at("fused_into").get_to(ledger.fusedInto);
    json.at("online").get_to(ledger.online);
    return ledger;
}

RowCounts rowsFrom(const Json &json)
{
    RowCounts rows{json.at("calibration").get<std::int64_t>(), json.at("validation").get<std::int64_t>(),
                   json.at("held_out").get<std::int64_t>(), json.at("sealed").get<std::int64_t>(),
                   json.at("available").get<std::int64_t>()};
    if (json.contains("fit"))
        rows.fit = json.at("fit").get<std::int64_t>();
    if (json.contains("score"))
        rows.score = json.at("score").get<std::int64_t>();
    return rows;
}

void readHead(Evaluation &e, const Json &json)
{
    e.file = textOf(json.at("file"));
    e.edge.value = textOf(json.at("edge"));
    json.at("consumers").get_to(e.consumers);
    const std::string status = textOf(json.at("status"));
    e.status = status == "ok" ? EvaluationStatus::Ok : status == "refused" ? EvaluationStatus::Refused : EvaluationStatus::Failed;
    e.reason = textOf(json.at("reason"));
    e.rule = textOf(json.at("rule"));
    for (const Json &member : json.at("chain"))
        e.chain.push_back(
            {textOf(member.at("method")), fieldsFromJson(member.at("params")), fieldsFromJson(member.at("fitted"))});
    e.backend = textOf(json.at("backend"));
    e.splitUnit = textOf(json.at("split").at("unit"));
    e.splitSeed = json.at("split").at("seed").get<std::uint64_t>();
    e.rows = rowsFrom(json.at("rows"));
    e.inSample = json.at("in_sample").get<bool>();
    json.at("consumers_missing").get_to(e.consumersMissing);
    e.partial = !e.consumersMissing.empty();
    e.analysisOnly = json.at("analysis_only").get<bool>();
    e.preview = json.at("preview").get<bool>();
}

void readResults(Evaluation &e, const Json &json)
{
    e.equivalence = equivalenceFrom(json.at("fp_equivalence"));
    if (json.at("function_change").is_number())
        e.functionChange = json.at("function_change").get<double>();
    if (json.at("output").is_object())
        e.output = outputFrom(json.at("output"));
    if (json.at("gain").is_number())
        e.gain = json.at("gain").get<double>();
    e.activation = tensorFrom(json.at("activation"));
    e.weightError = tensorFrom(json.at("weight_error"));
    if (const Json &t = json.at("terms"); t.is_object())
        e.terms = ErrorTerms{numberOf(t.at("activation_only")), numberOf(t.at("weight_only")), numberOf(t.at("cross")),
                             numberOf(t.at("interaction"))};
    e.conditioning = conditioningFrom(json.at("conditioning"));
    e.geometryAfter = geometryFrom(json.at("geometry_after"));
    e.exceptions = exceptionsFrom(json.at("exceptions"));
    for (const auto &[name, count] : json.at("clamps").items())
        e.clamps[name] = count.get<std::int64_t>();
    e.ledger = ledgerFrom(json.at("ledger"));
    e.seconds = numberOf(json.at("seconds"));
}

} // namespace

nlohmann::ordered_json evaluationState(const Evaluation &evaluation)
{
    Evaluation plain = evaluation;
    plain.notes.clear();
    return {{"schema", "planish-state/1"},
            {"evaluation", toJson(plain)},
            {"notes", evaluation.notes},
            {"sums", evaluation.sums ? sumsState(*evaluation.sums) : Json(nullptr)}};
}

std::optional<Evaluation> evaluationFromState(const nlohmann::ordered_json &json, const Candidate &candidate)
{
    try {
        if (json.at("schema") != "planish-state/1")
            return std::nullopt;
        Evaluation evaluation;
        evaluation.candidate = candidate.name;
        evaluation.seed = candidate.seed;
        evaluation.act = candidate.act;
        evaluation.weight = candidate.weight;
        evaluation.kv = candidate.kv;
        evaluation.selectedOn = candidate.selectedOn;
        readHead(evaluation, json.at("evaluation"));
        readResults(evaluation, json.at("evaluation"));
        json.at("notes").get_to(evaluation.notes);
        if (json.at("sums").is_object()) {
            evaluation.sums = sumsFrom(json.at("sums"));
            evaluation.uncertainty = uncertaintyOf(*evaluation.sums);
        }
        return evaluation;
    } catch (const Json::exception &) { // a damaged entry counts as none
        return std::nullopt;
    }
}

} // namespace planish
