#include "core/io/layouts/foreign_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace planish {

namespace {

struct SiteRule {
    std::string_view part; ///< found in the text behind the layer, dots around its parts
    std::string_view site;
};

// First match wins: longer names stand before those they contain.
constexpr std::array<SiteRule, 41> kInputs{{{".attn.c_proj.", "attn_out"},
                                            {".mlp.c_proj.", "mlp_down"},
                                            {".attention.output.dense.", "attn_out"},
                                            {".attn_out.", "attn_out"},
                                            {".attn_in.", "attn_in"},
                                            {".mlp_down.", "mlp_down"},
                                            {".mlp_in.", "mlp_in"},
                                            {".residual.", "residual"},
                                            {".q_pre.", "q_pre"},
                                            {".k_pre.", "k_pre"},
                                            {".q_post.", "q_post"},
                                            {".k_post.", "k_post"},
                                            {".hook_resid_pre.", "residual"},
                                            {".hook_resid_mid.", "residual"},
                                            {".hook_resid_post.", "residual"},
                                            {".ln1.hook_normalized.", "attn_in"},
                                            {".ln2.hook_normalized.", "mlp_in"},
                                            {".ln_final.hook_normalized.", "head"},
                                            {".mlp.hook_post.", "mlp_down"},
                                            {".hook_rot_q.", "q_post"},
                                            {".hook_rot_k.", "k_post"},
                                            {".hook_q.", "q_pre"},
                                            {".hook_k.", "k_pre"},
                                            {".hook_v.", "v"},
                                            {".hook_z.", "attn_out"},
                                            {".z.", "attn_out"},
                                            {".attn_heads.", "attn_out"},
                                            {".q_proj.", "attn_in"},
                                            {".k_proj.", "attn_in"},
                                            {".v_proj.", "attn_in"},
                                            {".qkv_proj.", "attn_in"},
                                            {".query_key_value.", "attn_in"},
                                            {".c_attn.", "attn_in"},
                                            {".o_proj.", "attn_out"},
                                            {".out_proj.", "attn_out"},
                                            {".gate_proj.", "mlp_in"},
                                            {".up_proj.", "mlp_in"},
                                            {".fc1.", "mlp_in"},
                                            {".c_fc.", "mlp_in"},
                                            {".down_proj.", "mlp_down"},
                                            {".fc2.", "mlp_down"}}};

constexpr std::array<SiteRule, 3> kOutputs{{{".q_proj.", "q_pre"}, {".k_proj.", "k_pre"}, {".v_proj.", "v"}}};

bool isNumber(std::string_view text)
{
    return !text.empty() && text.size() <= 9 &&
           std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::int64_t numberOf(std::string_view digits)
{
    std::int64_t value = -1;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
}

/// "layer_3", "layer14_mlp_in", "l2", "block.3" is told apart before: the number behind the word and what follows it.
bool layerInPart(const std::string &part, std::int64_t &layer, std::string &rest)
{
    for (const std::string_view word : {"layer_._", "layers_", "layer_", "layer", "block_", "block", "blk", "l"}) {
        if (!part.starts_with(word))
            continue;
        std::size_t end = word.size();
        while (end < part.size() && std::isdigit(static_cast<unsigned char>(part[end])) != 0)
            ++end;
        if (!isNumber(std::string_view(part).substr(word.size(), end - word.size())))
            continue;
        if (end < part.size() && part[end] != '_')
            continue;
        layer = numberOf(std::string_view(part).substr(word.size(), end - word.size()));
        rest = end < part.size() ? part.substr(end + 1) : std::string();
        return true;
    }
    return false;
}

std::string joined(const std::vector<std::string> &parts, std::size_t from)
{
    std::string text;
    for (std::size_t i = from; i < parts.size(); ++i)
        text += (text.empty() ? "" : ".") + parts[i];
    return text;
}

bool isLayerWord(const std::string &part)
{
    constexpr std::array<std::string_view, 6> kNames{"layers", "layer", "h", "blocks", "block", "blk"};
    return std::find(kNames.begin(), kNames.end(), part) != kNames.end();
}

template <std::size_t N> std::string siteOf(const std::array<SiteRule, N> &rules, const std::string &text)
{
    for (const SiteRule &rule : rules)
        if (text.find(rule.part) != std::string::npos)
            return std::string(rule.site);
    return {};
}

} // namespace

std::vector<std::string> nameParts(std::string_view path)
{
    std::vector<std::string> parts;
    std::string part;
    for (const char c : path) {
        if (c != '/' && c != '.' && c != '"' && c != '\'') {
            part += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
            continue;
        }
        // TensorFlow writes "layer_._0".
        if (c == '.' && part.ends_with("layer_")) {
            part += c;
            continue;
        }
        if (!part.empty())
            parts.push_back(part);
        part.clear();
    }
    if (!part.empty())
        parts.push_back(part);
    return parts;
}

PlaceInName placeInName(std::string_view path)
{
    PlaceInName place;
    const std::vector<std::string> parts = nameParts(path);
    std::string own;
    std::size_t after = 0;
    for (std::size_t i = 0; i < parts.size() && place.layer < 0; ++i) {
        if (isLayerWord(parts[i]) && i + 1 < parts.size() && isNumber(parts[i + 1])) {
            place.layer = numberOf(parts[i + 1]);
            after = i + 2;
        } else if (layerInPart(parts[i], place.layer, own)) {
            after = i + 1;
        }
    }
    place.rest = own;
    const std::string behind = joined(parts, after);
    if (!behind.empty())
        place.rest += (place.rest.empty() ? "" : ".") + behind;
    place.output = !parts.empty() && parts.back() == "output";
    place.moduleInput = !parts.empty() && parts.back() == "input";
    const std::string text = "." + place.rest + ".";
    place.site = place.output ? siteOf(kOutputs, text) : siteOf(kInputs, text);
    return place;
}

std::string_view leafOf(std::string_view path)
{
    return path.substr(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1);
}

std::string_view parentOf(std::string_view path)
{
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

bool namesWeight(std::string_view path)
{
    const std::vector<std::string> parts = nameParts(path);
    if (parts.empty() || parts.back() == "input" || parts.back() == "output")
        return false;
    constexpr std::array<std::string_view, 5> kNames{"weight", "weights", "kernel", "kernel:0", "w"};
    const auto named = [&](const std::string &part) { return std::find(kNames.begin(), kNames.end(), part) != kNames.end(); };
    return named(parts.front()) || named(parts.back()) || parts.back().ends_with("_proj");
}

std::string weightNameOf(std::string_view path)
{
    std::vector<std::string> parts = nameParts(path);
    if (!parts.empty() && (parts.back() == "weight" || parts.back() == "bias"))
        parts.pop_back();
    const PlaceInName place = placeInName(joined(parts, 0));
    if (place.layer < 0 || parts.empty())
        return joined(parts, 0);
    return "layers." + std::to_string(place.layer) + "." + parts.back();
}

NumberedName numberedName(std::string_view name)
{
    std::size_t begin = name.size();
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(name[begin - 1])) != 0)
        --begin;
    NumberedName out{std::string(name.substr(0, begin)), -1};
    if (isNumber(name.substr(begin)))
        out.number = numberOf(name.substr(begin));
    return out;
}

} // namespace planish
