// JSON of `analyze --sensitivity`: `sensitivity` of an edge and the `layers` table. Definitions: evaluation.md 4.
#include <cmath>

#include "core/run/envelope.h"
#include "core/run/run_sensitivity.h"

namespace planish {

namespace {

using Json = nlohmann::ordered_json;

Json finite(double value)
{
    return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json joinedJson(const std::map<std::string, double> &joined)
{
    Json json = Json::object();
    for (const auto &[name, value] : joined)
        json[name] = value;
    return json;
}

} // namespace

Json toJson(const Sensitivity &sensitivity, ArrayDetail arrays)
{
    Json json{{"act", canonicalText(sensitivity.specs.act, Role::Activation)},
              {"weight", canonicalText(sensitivity.specs.weight, Role::Weight)},
              {"rows", sensitivity.rows},
              {"damage", sensitivity.damage},
              {"diagonal_ratio", sensitivity.diagonalRatio ? finite(*sensitivity.diagonalRatio) : Json(nullptr)}};
    json["restore"] = Json::array();
    for (const ChannelRestore &channel : sensitivity.restore)
        json["restore"].push_back(
            {{"channel", channel.channel}, {"quantization", channel.quantization}, {"restore", channel.restore}});
    json["consumers"] = Json::array();
    for (const ConsumerRestore &consumer : sensitivity.consumers)
        json["consumers"].push_back(
            {{"name", consumer.name}, {"restore", consumer.restore}, {"relative_frobenius", finite(consumer.relativeFrobenius)}});
    if (arrays != ArrayDetail::None) {
        json["contribution"] = sensitivity.contribution;
        json["quantization"] = sensitivity.quantization;
    }
    json["output"] = outputJson(sensitivity.output);
    json["joined"] = joinedJson(sensitivity.joined);
    return json;
}

Json toJson(const LayerDamage &layer)
{
    Json json{{"layer", layer.layer}, {"damage", layer.damage}, {"relative_frobenius", finite(layer.relative)}};
    json["edges"] = Json::array();
    for (const EdgeDamage &edge : layer.edges)
        json["edges"].push_back({{"edge", edge.edge.value},
                                 {"damage", edge.damage},
                                 {"relative_frobenius", finite(edge.relative())},
                                 {"joined", joinedJson(edge.joined)}});
    return json;
}

} // namespace planish
