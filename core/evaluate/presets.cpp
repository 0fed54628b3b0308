// The presets of evaluation.md 11: candidates by their text, identity first. Members whose method has no row are listed as not
// built.
#include <algorithm>
#include <sstream>

#include "core/evaluate/compare.h"
#include "core/io/nearest.h"

namespace planish {
namespace {

/// `text` is METHOD [NAME=VALUE]…, which is also the candidate's name; a leading * marks what --effort quick leaves out.
/// Own specs, where given, replace those of the preset.
struct Member {
    std::string text;
    std::string name = {}, act = {}, weight = {};
};
struct Preset {
    std::string key, act, weight;
    std::vector<Member> members;
};

const Member kIdentity{"none"};
const Member kChannel{"none", "none at int8:channel", "int8:channel"};

std::vector<Preset> presetTable()
{
    const std::vector<Member> smooth = {{"smoothquant alpha=.5"}, {"smoothquant search=output"}};
    return {
        {"w8a8",
         "int8:token",
         "int8:row",
         {kIdentity,
          kChannel,
          {"clip"},
          {"llm_int8"},
          {"smoothquant alpha=.5"},
          {"smoothquant search=output"},
          {"smoothquant stat=rms"},
          {"os_plus"},
          {"hadamard"},
          {"zigzag_hadamard"},
          {"smooth_hadamard"},
          {"*omniquant"}}},
        {"w4a8",
         "int8:token",
         "int4:group128",
         {kIdentity,
          kChannel,
          {"clip"},
          {"smoothquant alpha=.5"},
          {"smoothquant search=output"},
          {"smoothquant stat=rms"},
          {"os_plus"},
          {"hadamard"},
          {"zigzag_hadamard"},
          {"smooth_hadamard"},
          {"*omniquant"},
          {"awq"},
          {"*svdquant"}}},
        {"w4a4",
         "int4:token",
         "int4:row",
         {kIdentity,
          {"smoothquant search=output"},
          {"smoothquant stat=rms"},
          {"block_hadamard"},
          {"hadamard seeds=8"},
          {"smooth_hadamard"},
          {"zigzag_hadamard"},
          {"duquant"},
          {"wush"},
          {"svdquant"},
          {"*spinquant"},
          {"*flatquant"}}},
        {"w4a16",
         "none",
         "int4:group128:asym",
         {kIdentity,
          {"clip target=weight"},
          {"awq"},
          {"awq duo=both"},
          {"magr"},
          {"*omniquant let=off"},
          {"*svdquant"},
          {"hadamard"}}},
        {"mxfp4",
         "mxfp4",
         "mxfp4",
         {kIdentity,
          {"smoothquant stat=rms"},
          {"block_hadamard block=32"},
          {"smooth_hadamard block=32"},
          {"zigzag_hadamard"},
          {"wush"},
          {"*flatquant"}}},
        {"nvfp4",
         "nvfp4",
         "nvfp4",
         {kIdentity,
          {"none", "none with dialect=four_over_six", "nvfp4:dialect=four_over_six", "nvfp4:dialect=four_over_six"},
          {"smoothquant stat=rms"},
          {"smooth_hadamard"},
          {"block_hadamard block=16"},
          {"wush"},
          {"*svdquant"}}},
        {"o1", "int8:token", "int8:tensor", {kIdentity, smooth[0], smooth[1]}},
        {"o2", "int8:tensor", "int8:tensor", {kIdentity, smooth[0], smooth[1]}},
        {"o3", "int8:tensor:static", "int8:tensor", {kIdentity, smooth[0], smooth[1]}},
    };
}

Expected<Candidate> candidateOf(const Preset &preset, const Member &member)
{
    std::string text = member.text.starts_with('*') ? member.text.substr(1) : member.text;
    Candidate candidate;
    candidate.name = member.name.empty() ? text : member.name;
    std::istringstream words(text);
    std::string method;
    words >> method;
    std::vector<std::string> sets;
    for (std::string word; words >> word;)
        sets.push_back(word);
    auto chain = parseChain(method, sets);
    if (!chain)
        return tl::make_unexpected(chain.error());
    candidate.chain = std::move(*chain);
    if (!findMethod(candidate.chain.front().method))
        candidate.unavailable = "not_built";
    auto act = parseQuantSpec(member.act.empty() ? preset.act : member.act, Role::Activation);
    auto weight = parseQuantSpec(member.weight.empty() ? preset.weight : member.weight, Role::Weight);
    if (!act || !weight)
        return tl::make_unexpected(act ? weight.error() : act.error());
    candidate.act = *act;
    candidate.weight = *weight;
    return candidate;
}

} // namespace

std::vector<std::string> presetNames()
{
    std::vector<std::string> names;
    for (const Preset &preset : presetTable())
        names.push_back(preset.key);
    return names;
}

Expected<std::vector<Candidate>> presetCandidates(std::string_view key, Effort effort)
{
    const std::vector<Preset> table = presetTable();
    const auto preset = std::ranges::find(table, key, &Preset::key);
    if (preset == table.end())
        return usageError("--preset " + std::string(key), "unknown preset",
                          "one of w8a8, w4a8, w4a4, w4a16, mxfp4, nvfp4, o1, o2, o3, nearest: " +
                              nearestText(key, presetNames()));
    std::vector<Candidate> candidates;
    for (const Member &member : preset->members) {
        if (effort == Effort::Quick && member.text.starts_with('*'))
            continue;
        auto candidate = candidateOf(*preset, member);
        if (!candidate)
            return tl::make_unexpected(candidate.error());
        candidates.push_back(std::move(*candidate));
    }
    return candidates;
}

} // namespace planish
