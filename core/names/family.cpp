#include "core/names/family.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>

#include <yaml-cpp/yaml.h>

namespace planish {

namespace {

using Keys = std::initializer_list<std::string_view>;

/// A fault inside a family file; thrown and caught in this file only, so that the readers below stay flat.
struct Fault {
    std::string path, what, expected;
};

[[noreturn]] void fail(std::string path, std::string what, std::string expected)
{
    throw Fault{std::move(path), std::move(what), std::move(expected)};
}

std::string join(Keys keys)
{
    std::string text;
    for (const std::string_view key : keys)
        text += (text.empty() ? "" : ", ") + std::string(key);
    return text;
}

void onlyKeys(const YAML::Node &node, const std::string &path, Keys keys)
{
    if (!node.IsMap())
        fail(path, "is no mapping", "keys " + join(keys));
    std::vector<std::string> seen;
    for (const auto &entry : node) {
        const auto key = entry.first.as<std::string>();
        const std::string where = path.empty() ? key : path + "." + key;
        if (std::find(keys.begin(), keys.end(), key) == keys.end())
            fail(where, "unknown key", "one of " + join(keys) + " was expected");
        if (std::find(seen.begin(), seen.end(), key) != seen.end())
            fail(where, "duplicate key", "each key once was expected");
        seen.push_back(key);
    }
}

std::string text(const YAML::Node &node, const std::string &path)
{
    if (!node.IsScalar())
        fail(path, "is no text", "one scalar was expected");
    return node.as<std::string>();
}

void readText(const YAML::Node &node, const char *key, const std::string &path, std::string &out)
{
    if (node[key])
        out = text(node[key], path + key);
}

void readFlag(const YAML::Node &node, const char *key, const std::string &path, bool &out)
{
    if (!node[key])
        return;
    const std::string word = text(node[key], path + key);
    if (word != "true" && word != "false")
        fail(path + key, "is '" + word + "'", "true or false was expected");
    out = word == "true";
}

void readTexts(const YAML::Node &node, const char *key, const std::string &path, std::vector<std::string> &out)
{
    const YAML::Node list = node[key];
    if (!list)
        return;
    if (!list.IsSequence())
        fail(path + key, "is no list", "a list of texts was expected");
    for (std::size_t i = 0; i < list.size(); ++i)
        out.push_back(text(list[i], path + key + "[" + std::to_string(i) + "]"));
}

NamePattern readPattern(const YAML::Node &node, const std::string &path)
{
    NamePattern pattern;
    if (node.IsScalar()) {
        pattern.pattern = node.as<std::string>();
        return pattern;
    }
    onlyKeys(node, path, {"from", "rows", "tied", "layout", "block", "stride"});
    const std::string dot = path + ".";
    readText(node, "from", dot, pattern.pattern);
    readText(node, "tied", dot, pattern.tiedTo);
    readText(node, "block", dot, pattern.block);
    readText(node, "stride", dot, pattern.stride);
    if (const YAML::Node rows = node["rows"]) {
        if (!rows.IsSequence() || rows.size() != 2)
            fail(dot + "rows", "is no pair", "[begin, end] was expected");
        pattern.rowBegin = text(rows[0], dot + "rows[0]");
        pattern.rowEnd = text(rows[1], dot + "rows[1]");
    }
    std::string layout = "out_in";
    readText(node, "layout", dot, layout);
    if (layout != "out_in" && layout != "in_out")
        fail(dot + "layout", "is '" + layout + "'", "out_in or in_out was expected");
    pattern.inOut = layout == "in_out";
    if (pattern.pattern.empty() == pattern.tiedTo.empty())
        fail(path, "names no tensor", "either from or tied was expected");
    return pattern;
}

void readNames(const YAML::Node &node, Family &family)
{
    if (!node || !node.IsMap())
        fail("names", "is missing or no mapping", "dump names with lists of patterns were expected");
    for (const auto &entry : node) {
        const auto name = entry.first.as<std::string>();
        const std::string path = "names." + name;
        if (family.names.count(name))
            fail(path, "duplicate key", "each dump name once was expected");
        if (!entry.second.IsSequence() || entry.second.size() == 0)
            fail(path, "is no list", "a list of patterns was expected");
        for (std::size_t i = 0; i < entry.second.size(); ++i) {
            NamePattern pattern = readPattern(entry.second[i], path + "[" + std::to_string(i) + "]");
            const YAML::Node &stated = entry.second[i];
            if (!stated.IsMap() || !stated["layout"]) // a pattern may differ: GPT-2 tables are stored [out, in]
                pattern.inOut = family.inOut;
            family.names[name].push_back(std::move(pattern));
        }
    }
}

std::map<std::string, FamilyEdge> readEdges(const YAML::Node &node, const std::string &path)
{
    if (!node.IsMap())
        fail(path, "is no mapping", "sites with their edges were expected");
    std::map<std::string, FamilyEdge> edges;
    for (const auto &entry : node) {
        FamilyEdge edge;
        edge.site = entry.first.as<std::string>();
        const std::string at = path + "." + edge.site, dot = at + ".";
        onlyKeys(entry.second, at, {"producer", "consumers", "other_readers", "ties", "between", "gate"});
        readText(entry.second, "producer", dot, edge.producer);
        readTexts(entry.second, "consumers", dot, edge.consumers);
        readTexts(entry.second, "other_readers", dot, edge.otherReaders);
        readText(entry.second, "ties", dot, edge.ties);
        readText(entry.second, "between", dot, edge.between);
        readText(entry.second, "gate", dot, edge.gate);
        if (!edge.ties.empty() && edge.ties != "gqa" && edge.ties != "rope_pair")
            fail(dot + "ties", "is '" + edge.ties + "'", "gqa or rope_pair was expected");
        if (!edges.emplace(edge.site, edge).second)
            fail(at, "duplicate key", "each site once was expected");
    }
    return edges;
}

void readVariants(const YAML::Node &list, Family &family)
{
    if (!list)
        return;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::string path = "variants[" + std::to_string(i) + "]";
        onlyKeys(list[i], path, {"when", "edges"});
        FamilyVariant variant;
        readText(list[i], "when", path + ".", variant.when);
        if (variant.when != "post_norm" && !variant.when.starts_with("has:"))
            fail(path + ".when", "is '" + variant.when + "'", "post_norm or has:DUMP NAME was expected");
        variant.edges = readEdges(list[i]["edges"], path + ".edges");
        family.variants.push_back(std::move(variant));
    }
}

void readStreams(const YAML::Node &node, Family &family)
{
    if (!node)
        return;
    for (const auto &entry : node) {
        FamilyStream stream;
        stream.name = entry.first.as<std::string>();
        const std::string path = "streams." + stream.name, dot = path + ".";
        onlyKeys(entry.second, path, {"writers", "readers", "final_norm", "post_norm_gain_on_writer"});
        readTexts(entry.second, "writers", dot, stream.writers);
        readTexts(entry.second, "readers", dot, stream.readers);
        readText(entry.second, "final_norm", dot, stream.finalNorm);
        readFlag(entry.second, "post_norm_gain_on_writer", dot, stream.postNormGainOnWriter);
        family.streams.push_back(std::move(stream));
    }
}

void readTargets(const YAML::Node &node, Family &family)
{
    if (!node)
        return;
    for (const auto &target : node) {
        const auto key = target.first.as<std::string>();
        for (const auto &entry : target.second)
            family.targets[key][entry.first.as<std::string>()] = text(entry.second, "targets." + key);
    }
}

void readNorm(const YAML::Node &node, Family &family)
{
    if (!node)
        return;
    onlyKeys(node, "norm", {"kind", "offset", "scale", "bias"});
    readText(node, "kind", "norm.", family.normKind);
    std::string offset = "0";
    readText(node, "offset", "norm.", offset);
    readFlag(node, "scale", "norm.", family.normHasScale);
    readFlag(node, "bias", "norm.", family.normHasBias);
    if (family.normKind != "rmsnorm" && family.normKind != "layernorm")
        fail("norm.kind", "is '" + family.normKind + "'", "rmsnorm or layernorm was expected");
    if (offset != "0" && offset != "1")
        fail("norm.offset", "is '" + offset + "'", "0 or 1 was expected");
    family.normOffset = offset == "1";
}

void readRope(const YAML::Node &rope, Family &family)
{
    if (!rope)
        return;
    onlyKeys(rope, "rope", {"style"});
    readText(rope, "style", "rope.", family.ropeStyle);
    if (family.ropeStyle != "half" && family.ropeStyle != "interleaved" && family.ropeStyle != "none")
        fail("rope.style", "is '" + family.ropeStyle + "'", "half, interleaved or none was expected");
}

void readMatch(const YAML::Node &match, Family &family)
{
    if (!match)
        return;
    onlyKeys(match, "match", {"architectures", "any"});
    readTexts(match, "architectures", "match.", family.architectures);
    readTexts(match, "any", "match.", family.anyOf);
}

Family readDocument(const YAML::Node &root)
{
    onlyKeys(root, "",
             {"family", "also", "match", "prefixes", "layout", "names", "norm", "rope", "qk_norm", "parallel_block", "post_norm",
              "causal", "bias_free", "embedding_scaled", "stream_has_linear_start", "edges", "variants", "streams", "targets"});
    Family family;
    readText(root, "family", "", family.key);
    if (family.key.empty())
        fail("family", "is missing", "the key of the family was expected");
    readTexts(root, "also", "", family.aliases);
    readMatch(root["match"], family);
    readTexts(root, "prefixes", "", family.prefixes);
    if (family.prefixes.empty())
        family.prefixes.push_back("");
    std::string layout = "out_in";
    readText(root, "layout", "", layout);
    if (layout != "out_in" && layout != "in_out")
        fail("layout", "is '" + layout + "'", "out_in or in_out was expected");
    family.inOut = layout == "in_out";
    readNames(root["names"], family);
    readNorm(root["norm"], family);
    readRope(root["rope"], family);
    readFlag(root, "qk_norm", "", family.qkNorm);
    readFlag(root, "parallel_block", "", family.parallelBlock);
    readFlag(root, "post_norm", "", family.postNorm);
    readFlag(root, "causal", "", family.causal);
    readFlag(root, "embedding_scaled", "", family.embeddingScaled);
    readFlag(root, "stream_has_linear_start", "", family.streamHasLinearStart);
    readTexts(root, "bias_free", "", family.biasFree);
    if (!root["edges"])
        fail("edges", "is missing", "the edges of a layer were expected");
    family.edges = readEdges(root["edges"], "edges");
    readVariants(root["variants"], family);
    readStreams(root["streams"], family);
    readTargets(root["targets"], family);
    return family;
}

} // namespace

bool FamilyEdge::shortcut() const
{
    return std::find(otherReaders.begin(), otherReaders.end(), "residual") != otherReaders.end();
}

const FamilyEdge *Family::edge(const std::string &site, const ModelInfo &model,
                               const std::function<bool(const std::string &)> &has) const
{
    for (const FamilyVariant &variant : variants) {
        const bool holds = variant.when == "post_norm" ? model.postNorm : has(variant.when.substr(4));
        const auto found = variant.edges.find(site);
        if (holds && found != variant.edges.end())
            return &found->second;
    }
    const auto found = edges.find(site);
    return found == edges.end() ? nullptr : &found->second;
}

Expected<Family> readFamily(const std::string &file)
{
    try {
        Family family = readDocument(YAML::LoadFile(file));
        family.file = file;
        return family;
    } catch (const Fault &fault) {
        return dataError(file, fault.path + ": " + fault.what, fault.expected);
    } catch (const YAML::Exception &exception) {
        return dataError(file, std::string("cannot be read as YAML: ") + exception.what(), "a family file was expected");
    }
}

} // namespace planish
