// Candidate files `planish-candidates/1` (YAML). Unknown and repeated keys are Usage errors with their path. cli.md "Files".
#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>

#include <yaml-cpp/yaml.h>

#include "core/evaluate/compare.h"
#include "core/io/nearest.h"

namespace planish {
namespace {

constexpr const char *kSchema = "planish-candidates/1";

struct Defaults {
    std::string act, weight, kv;
    std::uint64_t seed = 0;
};

class CandidatesReader {
public:
    explicit CandidatesReader(std::string file) : m_file(std::move(file)) {}

    Expected<std::vector<Candidate>> read(const YAML::Node &root)
    {
        if (auto keys = checkKeys(root, "", {"schema", "defaults", "candidates"}); !keys)
            return tl::make_unexpected(keys.error());
        if (!root["schema"] || !root["schema"].IsScalar() || root["schema"].Scalar() != kSchema)
            return fault("schema", "not a candidates file", std::string("schema: ") + kSchema);
        if (auto defaults = readDefaults(root["defaults"]); !defaults)
            return tl::make_unexpected(defaults.error());
        const YAML::Node list = root["candidates"];
        if (!list || !list.IsSequence())
            return fault("candidates", "no list", "candidates: [{name, method, params, act, weight, seed, edges}, …]");
        std::vector<Candidate> candidates;
        for (std::size_t i = 0; i < list.size(); ++i) {
            auto candidate = readCandidate(list[i], "candidates[" + std::to_string(i) + "]");
            if (!candidate)
                return tl::make_unexpected(candidate.error());
            candidates.push_back(std::move(*candidate));
        }
        return withIdentity(std::move(candidates));
    }

private:
    tl::unexpected<Error> fault(const std::string &path, const std::string &what, const std::string &expected) const
    {
        return usageError(m_file + (path.empty() ? "" : ": " + path), what, expected);
    }

    Expected<void> checkKeys(const YAML::Node &node, const std::string &path, const std::vector<std::string> &known) const
    {
        if (!node.IsMap())
            return fault(path, "not a map", "keys " + nearestText("", known, known.size()));
        std::set<std::string> seen;
        for (const auto &item : node) {
            const std::string key = item.first.IsScalar() ? item.first.Scalar() : "?";
            const std::string where = path.empty() ? key : path + "." + key;
            if (std::ranges::find(known, key) == known.end())
                return fault(where, "unknown key", nearestText(key, known, known.size()));
            if (!seen.insert(key).second)
                return fault(where, "given twice", "one value");
        }
        return {};
    }

    Expected<std::string> scalar(const YAML::Node &node, const std::string &path) const
    {
        if (!node.IsScalar())
            return fault(path, "not a single value", "text or a number");
        return node.Scalar();
    }

    Expected<std::uint64_t> seedOf(const YAML::Node &node, const std::string &path) const
    {
        const std::string text = node.IsScalar() ? node.Scalar() : "";
        std::uint64_t seed = 0;
        const auto done = std::from_chars(text.data(), text.data() + text.size(), seed);
        if (text.empty() || done.ec != std::errc() || done.ptr != text.data() + text.size())
            return fault(path, "seed " + text + " is not an integer", "an integer of at least 0");
        return seed;
    }

    Expected<void> readDefaults(const YAML::Node &node)
    {
        if (!node || node.IsNull())
            return {};
        if (auto keys = checkKeys(node, "defaults", {"act", "weight", "kv", "seed"}); !keys)
            return keys;
        for (auto [key, slot] :
             {std::pair{"act", &m_defaults.act}, std::pair{"weight", &m_defaults.weight}, std::pair{"kv", &m_defaults.kv}}) {
            if (!node[key])
                continue;
            auto text = scalar(node[key], std::string("defaults.") + key);
            if (!text)
                return tl::make_unexpected(text.error());
            *slot = *text;
        }
        if (!node["seed"])
            return {};
        auto seed = seedOf(node["seed"], "defaults.seed");
        if (!seed)
            return tl::make_unexpected(seed.error());
        m_defaults.seed = *seed;
        return {};
    }

    /// Text of a parameter: a scalar, or a list joined by commas.
    Expected<std::string> paramText(const YAML::Node &node, const std::string &path) const
    {
        if (node.IsScalar())
            return node.Scalar();
        if (!node.IsSequence())
            return fault(path, "not a value", "text, a number or a list");
        std::string text;
        for (const auto &item : node) {
            auto part = scalar(item, path);
            if (!part)
                return part;
            text += (text.empty() ? "" : ",") + *part;
        }
        return text.empty() ? "none" : text;
    }

    Expected<std::vector<std::string>> setsOf(const YAML::Node &params, const std::string &path, const std::string &prefix) const
    {
        std::vector<std::string> sets;
        if (!params || params.IsNull())
            return sets;
        if (!params.IsMap())
            return fault(path, "not a map", "{name: value, …}");
        for (const auto &item : params) {
            const std::string name = item.first.Scalar();
            auto text = paramText(item.second, path + "." + name);
            if (!text)
                return tl::make_unexpected(text.error());
            sets.push_back(prefix + name + "=" + *text);
        }
        return sets;
    }

    /// `method: KEY[+KEY]` with params, or a list of keys and {KEY: {params}}.
    Expected<std::vector<ChainMember>> chainOf(const YAML::Node &node, const std::string &path) const
    {
        const YAML::Node method = node["method"];
        if (!method)
            return fault(path + ".method", "missing", "a method key or a list of {KEY: {params}}");
        std::string keys;
        std::vector<std::string> sets;
        if (method.IsScalar()) {
            keys = method.Scalar();
        } else if (method.IsSequence()) {
            for (std::size_t i = 0; i < method.size(); ++i) {
                const std::string where = path + ".method[" + std::to_string(i) + "]";
                const YAML::Node &member = method[i];
                if (!member.IsScalar() && !(member.IsMap() && member.size() == 1))
                    return fault(where, "not a chain member", "KEY or {KEY: {params}}");
                const std::string key = member.IsScalar() ? member.Scalar() : member.begin()->first.Scalar();
                keys += (keys.empty() ? "" : "+") + key;
                auto own = member.IsMap() ? setsOf(member.begin()->second, where + "." + key, std::to_string(i + 1) + ".")
                                          : Expected<std::vector<std::string>>(std::vector<std::string>());
                if (!own)
                    return tl::make_unexpected(own.error());
                sets.insert(sets.end(), own->begin(), own->end());
            }
        } else {
            return fault(path + ".method", "not a method", "a method key or a list of {KEY: {params}}");
        }
        auto more = setsOf(node["params"], path + ".params", "");
        if (!more)
            return tl::make_unexpected(more.error());
        sets.insert(sets.end(), more->begin(), more->end());
        auto chain = parseChain(keys, sets);
        if (!chain)
            return fault(path, toTextOf(chain.error()), chain.error().expected);
        return chain;
    }

    static std::string toTextOf(const Error &error) { return error.subject + ": " + error.what; }

    Expected<QuantSpec> specOf(const YAML::Node &node, const std::string &fallback, Role role, const std::string &path) const
    {
        std::string text = fallback;
        if (node) {
            auto own = scalar(node, path);
            if (!own)
                return tl::make_unexpected(own.error());
            text = *own;
        }
        if (text.empty())
            return fault(path, "missing", "a quantizer such as int8:token here or in defaults");
        auto spec = parseQuantSpec(text, role);
        if (!spec)
            return fault(path, toTextOf(spec.error()), spec.error().expected);
        return spec;
    }

    Expected<Candidate> readCandidate(const YAML::Node &node, const std::string &path)
    {
        if (auto keys = checkKeys(node, path, {"name", "method", "params", "act", "weight", "kv", "seed", "edges"}); !keys)
            return tl::make_unexpected(keys.error());
        auto name = node["name"] ? scalar(node["name"], path + ".name") : fault(path + ".name", "missing", "a unique name");
        auto chain = name ? chainOf(node, path) : tl::make_unexpected(name.error());
        auto act =
            chain ? specOf(node["act"], m_defaults.act, Role::Activation, path + ".act") : tl::make_unexpected(chain.error());
        auto weight =
            act ? specOf(node["weight"], m_defaults.weight, Role::Weight, path + ".weight") : tl::make_unexpected(act.error());
        if (!weight)
            return tl::make_unexpected(weight.error());
        if (!m_names.insert(*name).second)
            return fault(path + ".name", "the name " + *name + " is used twice", "unique names");
        Candidate candidate{.name = *name, .chain = *chain, .seed = m_defaults.seed, .act = *act, .weight = *weight};
        if (node["kv"] || !m_defaults.kv.empty()) {
            auto kv = specOf(node["kv"], m_defaults.kv, Role::Activation, path + ".kv");
            if (!kv)
                return tl::make_unexpected(kv.error());
            candidate.kv = *kv;
        }
        if (node["seed"]) {
            auto seed = seedOf(node["seed"], path + ".seed");
            if (!seed)
                return tl::make_unexpected(seed.error());
            candidate.seed = *seed;
        }
        for (const ChainMember &member : candidate.chain)
            if (!findMethod(member.method))
                candidate.unavailable = "not_built";
        return withEdges(node["edges"], path + ".edges", std::move(candidate));
    }

    Expected<Candidate> withEdges(const YAML::Node &edges, const std::string &path, Candidate candidate) const
    {
        if (!edges || edges.IsNull())
            return candidate;
        if (!edges.IsSequence())
            return fault(path, "not a list", "a list of edge globs");
        for (const auto &edge : edges) {
            auto glob = scalar(edge, path);
            if (!glob)
                return tl::make_unexpected(glob.error());
            candidate.edges.push_back(*glob);
        }
        return candidate;
    }

    /// Candidate 0 is `none` under the default specs: found and renamed, or added (evaluation.md 12).
    Expected<std::vector<Candidate>> withIdentity(std::vector<Candidate> candidates) const
    {
        auto act = specOf(YAML::Node(YAML::NodeType::Undefined), m_defaults.act, Role::Activation, "defaults.act");
        auto weight = specOf(YAML::Node(YAML::NodeType::Undefined), m_defaults.weight, Role::Weight, "defaults.weight");
        if ((!act || !weight) && candidates.empty())
            return tl::make_unexpected(act ? weight.error() : act.error());
        const QuantSpec wantedAct = act ? *act : candidates.front().act,
                        wantedWeight = weight ? *weight : candidates.front().weight;
        const auto identity = std::ranges::find_if(candidates, [&](const Candidate &c) {
            return c.chain.size() == 1 && c.chain.front().method == "none" && c.edges.empty() && c.act == wantedAct &&
                   c.weight == wantedWeight;
        });
        Candidate first;
        if (identity == candidates.end()) {
            first = {.name = "none",
                     .chain = {{.method = "none", .set = {}}},
                     .seed = m_defaults.seed,
                     .act = wantedAct,
                     .weight = wantedWeight};
        } else {
            first = *identity;
            candidates.erase(identity);
        }
        first.name = "none";
        if (std::ranges::find(candidates, "none", &Candidate::name) != candidates.end())
            return fault("candidates", "the name none belongs to the identity under the default specs", "another name");
        candidates.insert(candidates.begin(), std::move(first));
        return candidates;
    }

    std::string m_file;
    Defaults m_defaults;
    std::set<std::string> m_names;
};

} // namespace

Expected<std::vector<Candidate>> readCandidatesFile(const std::string &file)
{
    std::ifstream stream(file, std::ios::binary);
    if (!stream)
        return dataError(file, "cannot be read", "a candidates file");
    std::ostringstream text;
    text << stream.rdbuf();
    try {
        return CandidatesReader(file).read(YAML::Load(text.str()));
    } catch (const YAML::Exception &error) {
        return usageError(file, error.what(), "YAML of schema planish-candidates/1");
    }
}

} // namespace planish
