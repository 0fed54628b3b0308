// JSON of the verb `intervene` (planish.intervention/1). Definitions: evaluation.md 5.
#include <cmath>

#include "core/evaluate/part_rows.h"
#include "core/run/envelope.h"
#include "core/run/run_intervene.h"

namespace planish {

namespace {

using Json = nlohmann::ordered_json;

Json optional(const std::optional<double> &value)
{
    return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json fullPrecisionJson(const Intervention &intervention, Json &notes)
{
    if (!intervention.fullPrecision) {
        notes.push_back("full_precision: " + textOf(intervention.action) + " changes nothing without quantizers");
        return nullptr;
    }
    Json output = outputJson(*intervention.fullPrecision);
    if (!std::isfinite(intervention.fullPrecision->sqnrDb))
        notes.push_back("full_precision.output.sqnr_db: infinite, the output does not change");
    Json json{{"output", output}};
    json["per_consumer"] = output["per_consumer"];
    json["rows"] = output["rows"];
    return json;
}

Json quantizedJson(const Intervention &intervention)
{
    if (!intervention.quantized)
        return nullptr;
    const QuantizedChange &change = *intervention.quantized;
    return {{"before", change.before},
            {"after", change.after},
            {"everything", change.everything},
            {"act", canonicalText(intervention.specs->act, Role::Activation)},
            {"weight", canonicalText(intervention.specs->weight, Role::Weight)},
            {"output", outputJson(change.output)}};
}

} // namespace

Json toJson(const Intervention &intervention)
{
    Json notes = Json::array();
    for (const std::string &note : intervention.notes)
        notes.push_back(note);
    const ControlFigures &control = intervention.control;
    Json json{
        {"schema", "planish.intervention/1"}, {"edge", intervention.edge.value},
        {"target", intervention.target.text}, {"action", textOf(intervention.action)},
        {"part", nameOf(intervention.part)},  {"rows", {{"measured", intervention.rows}, {"available", intervention.available}}}};
    json["full_precision"] = fullPrecisionJson(intervention, notes);
    json["quantized"] = quantizedJson(intervention);
    json["effect"] = optional(intervention.effect);
    json["control"] = {{"sets", control.sets},
                       {"mean", optional(control.mean)},
                       {"standard_deviation", optional(control.standardDeviation)},
                       {"max", optional(control.max)},
                       {"values", control.values}};
    json["ratio"] = optional(intervention.ratio);
    json["notes"] = std::move(notes);
    return json;
}

Json toJson(const std::vector<Intervention> &interventions)
{
    if (interventions.size() == 1)
        return toJson(interventions.front());
    Json json{{"schema", "planish.interventions/1"}, {"interventions", Json::array()}};
    for (const Intervention &intervention : interventions)
        json["interventions"].push_back(toJson(intervention));
    return json;
}

} // namespace planish
