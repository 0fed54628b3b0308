// JSON of the verb `analyze` (planish.analysis/1). Field names and definitions: evaluation.md 2 and 3.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/run/analysis_fields.h"
#include "core/run/envelope.h"
#include "core/run/run_sensitivity.h"

namespace planish {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kTopChannels = 8; // evaluation.md 2

// Values as JSON; what is undefined becomes null, with one note a field: {edge, field, count, first}.
class Nulls {
public:
    Nulls(std::string edge, Json &notes) : m_edge(std::move(edge)), m_notes(notes) {}
    void enter(std::string prefix) { m_prefix = std::move(prefix); }

    Json number(const std::string &field, std::optional<double> value, const char *reason = nullptr)
    {
        if (value && std::isfinite(*value))
            return *value;
        Json note{{"edge", m_edge}, {"field", m_prefix + field}, {"count", 1}, {"first", nullptr}};
        if (reason)
            note["reason"] = reason;
        m_notes.push_back(std::move(note));
        return nullptr;
    }
    Json array(const std::string &field, const std::vector<std::optional<double>> &values)
    {
        Json list = Json::array();
        std::size_t missing = 0, first = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const bool defined = values[i] && std::isfinite(*values[i]);
            list.push_back(defined ? Json(*values[i]) : Json(nullptr));
            if (!defined && missing++ == 0)
                first = i;
        }
        if (missing > 0)
            m_notes.push_back({{"edge", m_edge}, {"field", m_prefix + field}, {"count", missing}, {"first", first}});
        return list;
    }

private:
    std::string m_edge, m_prefix;
    Json &m_notes;
};

Json topChannels(const std::vector<double> &values)
{
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t count = std::min(kTopChannels, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                      [&](std::size_t a, std::size_t b) { return values[a] != values[b] ? values[a] > values[b] : a < b; });
    order.resize(count);
    return order;
}

Json channelArrays(const Statistics &s, const EdgeAnalysis *edge, Nulls &nulls)
{
    Json json = Json::object();
    for (const ChannelField &field : channelFields()) {
        std::vector<std::optional<double>> values(s.channels);
        for (std::size_t k = 0; k < s.channels; ++k)
            values[k] = field.value(s, k);
        json[field.name] = nulls.array(std::string("channel.") + field.name, values);
    }
    if (edge && !edge->weightMax.empty()) {
        json["weight_max"] = edge->weightMax;
        json["weight_energy"] = edge->weightEnergy;
    }
    return json;
}

Json tokenArrays(const Statistics &s, Nulls &nulls)
{
    Json json = Json::object();
    json["row"] = s.token.row;
    if (!s.token.request.empty()) {
        json["request"] = s.token.request;
        json["position"] = s.token.position;
    }
    for (const TokenField &field : tokenFields()) {
        std::vector<std::optional<double>> values(s.token.row.size());
        for (std::size_t r = 0; r < values.size(); ++r)
            values[r] = field.value(s, r);
        json[field.name] = nulls.array(std::string("token.") + field.name, values);
    }
    return json;
}

Json concentrationJson(const Concentration &c, Nulls &nulls)
{
    const auto share = [&](const char *name, std::optional<double> value) {
        return nulls.number(std::string("concentration.") + name, value, "zero_energy");
    };
    return {{"c1", share("c1", c.c1)}, {"c8", share("c8", c.c8)}, {"c1pct", share("c1pct", c.c1pct)}, {"r_c1pct", c.r1pct}};
}

Json argmaxJson(const Statistics &s)
{
    if (s.argmaxRow < 0)
        return nullptr;
    return {{"row", s.argmaxRow}, {"channel", s.argmaxChannel}, {"value", s.argmaxValue}};
}

Json nonFiniteFirst(const Statistics &s)
{
    if (s.nonFinite == 0)
        return nullptr;
    return {{"row", s.firstNonFiniteRow}, {"channel", s.firstNonFiniteChannel}};
}

void addScalars(const Statistics &s, const Concentration &concentration, Nulls &nulls, Json &json)
{
    const ChannelCounts counts = channelCounts(s);
    json["concentration"] = concentrationJson(concentration, nulls);
    json["max_abs"] = s.finite() > 0 ? Json(s.maxAbs) : nulls.number("max_abs", std::nullopt, "no finite element");
    json["argmax"] = argmaxJson(s);
    json["median_abs"] = s.finite() > 0 ? Json(s.medianAbs) : nulls.number("median_abs", std::nullopt, "no finite element");
    json["median_exact"] = s.medianExact;
    json["max_to_median"] = nulls.number("max_to_median", s.maxToMedian(), "zero_median");
    json["zero_median"] = s.medianAbs == 0.0;
    json["zero_energy"] = s.energy() == 0.0;
    json["density"] = densityOf(s, s.channel.overTau);
    json["density_ge"] = densityOf(s, s.channel.overTauOrEqual);
    json["tensor_kurtosis"] = nulls.number("tensor_kurtosis", s.tensor.kurtosis(), "zero variance");
    json["energy"] = nulls.number("energy", s.energy(), "overflow");
    json["dead_channels"] = counts.dead;
    json["constant_channels"] = counts.constant;
    json["top_channels"] = {{"by_max_abs", topChannels(s.channel.maxAbs)}, {"by_energy", topChannels(s.channel.energy)}};
    json["mean_incoherence"] = nulls.number("mean_incoherence", s.meanIncoherence(), "zero rows only");
    json["max_incoherence"] =
        nulls.number("max_incoherence", s.meanIncoherence() ? std::optional(s.incoherenceMax) : std::nullopt, "zero rows only");
    json["zero_rows"] = s.zeroRows;
    json["nonfinite"] = s.nonFinite;
    json["nonfinite_first"] = nonFiniteFirst(s);
}

void addBlock(const Statistics &s, const Concentration &concentration, ArrayDetail arrays, const EdgeAnalysis *edge, Nulls &nulls,
              Json &json)
{
    json["tau"] = s.tau;
    json["tokens"] = s.tokens;
    json["channels"] = s.channels;
    json["rows_in_file"] = s.rowsInFile;
    json["masked"] = s.masked;
    json["skipped"] = s.skipped;
    addScalars(s, concentration, nulls, json);
    if (arrays != ArrayDetail::None)
        json["channel"] = channelArrays(s, edge, nulls);
    if (arrays == ArrayDetail::All && !s.token.row.empty())
        json["token"] = tokenArrays(s, nulls);
}

Json findingJson(const Finding &finding)
{
    Json rule{{"text", finding.rule.text},
              {"statistic", finding.rule.statistic},
              {"comparator", finding.rule.comparator},
              {"threshold", finding.rule.threshold}};
    rule["scope"] = finding.rule.scope.empty() ? Json(nullptr) : Json(finding.rule.scope);
    Json json{{"id", finding.id}, {"kind", finding.kind}, {"where", finding.where}, {"rule", rule}, {"value", finding.value}};
    json["sharing"] = finding.sharing.empty() ? Json(nullptr) : Json(finding.sharing);
    json["stability"] = finding.stability ? Json(*finding.stability) : Json(nullptr);
    json["evidence"] = finding.evidence;
    json["interventions"] = finding.interventions;
    if (finding.soft)
        json["soft"] = true;
    return json;
}

Json edgeJson(const EdgeAnalysis &edge, ArrayDetail arrays, Json &notes)
{
    Nulls nulls(edge.edge.value, notes);
    Json json{{"edge", edge.edge.value}, {"layer", edge.layer}, {"site", edge.site}, {"dtype", edge.dtype}};
    addBlock(*edge.statistics, edge.concentration, arrays, &edge, nulls, json);
    json["findings"] = Json::array();
    std::size_t unstable = 0;
    for (const Finding &finding : edge.findings) {
        json["findings"].push_back(findingJson(finding));
        unstable += !finding.stability;
    }
    if (unstable > 0)
        notes.push_back({{"edge", edge.edge.value}, {"field", "findings.stability"}, {"count", unstable}, {"first", 0}});
    json["phases"] = Json::object();
    for (const auto &[name, statistics] : edge.phases) {
        nulls.enter("phases." + name + ".");
        Json phase = Json::object();
        addBlock(*statistics, concentrationOf(*statistics), arrays, nullptr, nulls, phase);
        json["phases"][name] = std::move(phase);
    }
    json["sensitivity"] = edge.sensitivity ? toJson(*edge.sensitivity, arrays) : Json(nullptr);
    json["notes"] = edge.notes;
    return json;
}

Json systematicJson(const std::vector<SystematicDimension> &dimensions)
{
    Json list = Json::array();
    for (const SystematicDimension &d : dimensions)
        list.push_back({{"channel", d.channel},
                        {"layers", d.layers},
                        {"layer_fraction", d.layerFraction},
                        {"position_fraction_all", d.positionFractionAll},
                        {"position_fraction_affected", d.positionFractionAffected}});
    return list;
}

} // namespace

nlohmann::ordered_json toJson(const Analysis &analysis, ArrayDetail arrays)
{
    if (arrays == ArrayDetail::Auto)
        arrays = analysis.edges.size() == 1 ? ArrayDetail::All : ArrayDetail::Channel;
    Json json{{"schema", "planish.analysis/1"}, {"file", analysis.file}};
    Json notes = Json::array(), edges = Json::array();
    for (const std::string &note : analysis.notes)
        notes.push_back(note);
    for (const EdgeAnalysis &edge : analysis.edges)
        edges.push_back(edgeJson(edge, arrays, notes));
    json["edges"] = std::move(edges);
    json["systematic_dimensions"] = systematicJson(analysis.systematic);
    json["layers"] = Json::array();
    for (const LayerDamage &layer : analysis.layers)
        json["layers"].push_back(toJson(layer));
    json["notes"] = std::move(notes);
    return json;
}

} // namespace planish
