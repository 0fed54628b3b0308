// JSON (planish.difference/1) and CSV of the verb `diff`. cli.md.
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "core/io/atomic_file.h"
#include "core/run/run_diff.h"

namespace planish {

namespace {

using Json = nlohmann::ordered_json;

bool isDefined(const std::optional<double> &value)
{
    return value && std::isfinite(*value);
}

struct Figure {
    const char *name;
    const std::optional<double> *values;
};

std::vector<Figure> figuresOf(const EdgeDifference &edge)
{
    return {{"max_to_median", edge.maxToMedian}, {"c1pct", edge.c1pct}, {"mean_incoherence", edge.meanIncoherence}};
}

Json edgeJson(const EdgeDifference &edge, Json &notes)
{
    Json json{{"edge", edge.edge.value}, {"only_in", edge.onlyIn.empty() ? Json(nullptr) : Json(edge.onlyIn)}};
    for (const Figure &figure : figuresOf(edge)) {
        Json pair = Json::array();
        for (std::size_t side = 0; side < 2; ++side) {
            const bool defined = isDefined(figure.values[side]);
            pair.push_back(defined ? Json(*figure.values[side]) : Json(nullptr));
            if (!defined && edge.onlyIn.empty())
                notes.push_back({{"edge", edge.edge.value}, {"field", figure.name}, {"count", 1}, {"first", side}});
        }
        json[figure.name] = std::move(pair);
    }
    json["channel_shift"] = Json::array();
    for (const ChannelShift &shift : edge.channelShift)
        json["channel_shift"].push_back(
            {{"channel", shift.channel}, {"max_abs", {shift.before, shift.after}}, {"change", shift.after - shift.before}});
    json["findings"] = {{"gained", edge.findings.gained},
                        {"lost", edge.findings.lost},
                        {"kept", edge.findings.kept},
                        {"within_stability", edge.findings.withinStability}};
    return json;
}

std::string quoted(const std::string &text)
{
    if (text.find_first_of(",\"\r\n") == std::string::npos)
        return text;
    std::string out = "\"";
    for (const char c : text)
        out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
}

std::string number(const std::optional<double> &value)
{
    if (!isDefined(value))
        return {};
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", *value);
    return text;
}

} // namespace

Json toJson(const Difference &difference)
{
    Json notes = Json::array(), edges = Json::array();
    for (const std::string &note : difference.notes)
        notes.push_back(note);
    for (const EdgeDifference &edge : difference.edges)
        edges.push_back(edgeJson(edge, notes));
    return {{"schema", "planish.difference/1"},
            {"files", {difference.files[0], difference.files[1]}},
            {"edges", std::move(edges)},
            {"notes", std::move(notes)}};
}

Expected<void> writeDifferenceCsv(const Difference &difference, const std::string &file)
{
    std::string text = "edge,only_in,max_to_median_a,max_to_median_b,c1pct_a,c1pct_b,mean_incoherence_a,mean_incoherence_b,"
                       "gained,lost,kept,within_stability\n";
    for (const EdgeDifference &edge : difference.edges) {
        text += quoted(edge.edge.value) + "," + quoted(edge.onlyIn);
        for (const Figure &figure : figuresOf(edge))
            text += "," + number(figure.values[0]) + "," + number(figure.values[1]);
        for (const auto *list : {&edge.findings.gained, &edge.findings.lost, &edge.findings.kept, &edge.findings.withinStability})
            text += "," + std::to_string(list->size());
        text += "\n";
    }
    return writeFileAtomically(file, text);
}

} // namespace planish
