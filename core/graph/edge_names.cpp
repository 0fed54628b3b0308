#include "core/graph/edge_names.h"

#include <algorithm>
#include <charconv>

namespace planish {

namespace {

/// Position behind "layers.<n>." in a name, npos without one; `layer` is the number.
std::size_t behindLayer(const std::string &name, std::size_t &begin, std::int64_t &layer)
{
    constexpr std::string_view kLayers = "layers.";
    for (std::size_t at = name.find(kLayers); at != std::string::npos; at = name.find(kLayers, at + 1)) {
        if (at > 0 && name[at - 1] != '.')
            continue;
        const char *first = name.data() + at + kLayers.size(), *last = name.data() + name.size();
        const auto number = std::from_chars(first, last, layer);
        if (number.ec != std::errc() || number.ptr == last || *number.ptr != '.')
            continue;
        begin = at;
        return static_cast<std::size_t>(number.ptr - name.data()) + 1;
    }
    return std::string::npos;
}

std::string replaced(std::string text, std::string_view what, std::string_view with)
{
    if (const std::size_t at = text.find(what); at != std::string::npos)
        text.replace(at, what.size(), with);
    return text;
}

/// All names of a pattern with one open number: as many as the files have, else as many as the model states.
std::vector<std::string> countUp(const std::string &pattern, PatternNumbers numbers, bool experts, const KnownNames &known)
{
    std::vector<std::string> names;
    const std::int64_t stated = experts ? known.experts : known.layers;
    for (std::int64_t i = 0; i < 65536; ++i) {
        (experts ? numbers.expert : numbers.layer) = i;
        const std::string name = fillPattern(pattern, numbers);
        if (i >= stated && !(known.has && known.has(name)))
            break;
        names.push_back(name);
    }
    return names;
}

const FamilyEdge *edgeOfPlan(const Family &family, const EdgePlace &place, const ModelInfo &model)
{
    return family.edge(place.key, model, [](const std::string &) { return false; });
}

} // namespace

EdgePlace placeOfEdge(const std::string &id, std::int64_t layer, const std::string &site, const Family *family)
{
    EdgePlace place;
    place.numbers.layer = layer;
    place.key = site;
    std::size_t begin = 0;
    std::int64_t number = -1;
    const std::size_t behind = behindLayer(id, begin, number);
    if (behind == std::string::npos) {
        if (family && family->edges.count(id))
            place.key = id; // "encoder_out"
        return place;
    }
    place.prefix = id.substr(0, begin);
    if (layer < 0)
        place.numbers.layer = number;
    const std::string rest = place.prefix + id.substr(behind);
    if (!family)
        return place;
    for (const auto &[key, edge] : family->edges)
        if (const auto numbers = matchPattern(key, rest)) {
            place.key = key;
            place.numbers.expert = numbers->expert;
            return place;
        }
    if (family->edges.count(place.prefix + site))
        place.key = place.prefix + site;
    else
        place.prefix = family->edges.count(site) ? std::string() : place.prefix;
    return place;
}

std::vector<std::string> namesOfRole(const std::string &role, const EdgePlace &place, const Family &family,
                                     const KnownNames &known)
{
    if (role.find("layers.*") != std::string::npos)
        return countUp(replaced(role, "layers.*", "layers.{l}"), {}, false, known);
    const bool everyExpert = role.find("experts.*") != std::string::npos;
    const std::string own = everyExpert ? replaced(role, "experts.*", "experts.{e}") : role;
    const std::string inLayer = place.prefix + "layers.{l}." + own;
    if (!family.names.count(inLayer) && family.names.count(own))
        return {fillPattern(own, place.numbers)};
    if (own.find("{e}") != std::string::npos && (everyExpert || place.numbers.expert < 0))
        return countUp(inLayer, place.numbers, true, known);
    return {fillPattern(inLayer, place.numbers)};
}

std::string roleOf(const std::string &dumpName)
{
    std::size_t begin = 0;
    std::int64_t layer = -1;
    const std::size_t behind = behindLayer(dumpName, begin, layer);
    const std::string rest = behind == std::string::npos ? dumpName : dumpName.substr(behind);
    if (rest.starts_with("experts."))
        return rest.substr(rest.find('.', 8) == std::string::npos ? 0 : rest.find('.', 8) + 1);
    return rest;
}

std::vector<FamilyReader> readersOfEdge(const Family &family, const FamilyEdge &edge, const EdgePlace &place,
                                        const KnownNames &known)
{
    std::vector<FamilyReader> readers;
    const auto add = [&](const std::string &role, const std::string &kind) {
        for (const std::string &name : namesOfRole(role, place, family, known))
            if (std::none_of(readers.begin(), readers.end(), [&](const FamilyReader &reader) { return reader.name == name; }))
                readers.push_back({name, kind});
    };
    for (const std::string &role : edge.consumers)
        add(role, "linear");
    for (const std::string &reader : edge.otherReaders) {
        const std::size_t colon = reader.find(':');
        if (colon == std::string::npos)
            readers.push_back({reader, reader}); // the shortcut: "residual"
        else
            add(reader.substr(colon + 1), reader.substr(0, colon));
    }
    return readers;
}

bool coversReader(const Family &family, const EdgePlace &place, const std::string &reader,
                  const std::vector<std::string> &covered)
{
    const auto named = [&](const std::string &name) { return std::find(covered.begin(), covered.end(), name) != covered.end(); };
    if (named(reader))
        return true;
    // A fused tensor is also covered by all of its parts: q, k and v for qkv.
    const auto whole = std::find_if(family.names.begin(), family.names.end(),
                                    [&](const auto &entry) { return fillPattern(entry.first, place.numbers) == reader; });
    if (whole == family.names.end() || whole->second.front().pattern.empty() || !whole->second.front().rowBegin.empty())
        return false;
    std::size_t parts = 0;
    for (const auto &[name, patterns] : family.names)
        if (!patterns.front().rowBegin.empty() && patterns.front().pattern == whole->second.front().pattern) {
            ++parts;
            if (!named(fillPattern(name, place.numbers)))
                return false;
        }
    return parts > 1;
}

std::vector<OtherReader> uncoveredReaders(const Family &family, const ModelInfo &model, const std::string &edgeId,
                                          std::int64_t layer, const std::string &site, const std::vector<std::string> &covered)
{
    const EdgePlace place = placeOfEdge(edgeId, layer, site, &family);
    const FamilyEdge *edge = edgeOfPlan(family, place, model);
    std::vector<OtherReader> left;
    if (!edge)
        return left;
    std::vector<std::string> names;
    for (const std::string &text : covered) {
        std::string name;
        std::int64_t begin = 0, end = 0;
        splitRowRange(text, name, begin, end);
        names.push_back(name);
    }
    for (const FamilyReader &reader : readersOfEdge(family, *edge, place, {{}, model.numExperts, model.numLayers}))
        if (!coversReader(family, place, reader.name, names))
            left.push_back({reader.name, reader.kind});
    return left;
}

} // namespace planish
