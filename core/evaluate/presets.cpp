// The presets of evaluation.md 11: candidates by their text, identity first. Members whose method has no row are listed as not
// built.
#include <algorithm>
#include <sstream>

#include "core/evaluate/compare.h"
#include "core/io/nearest.h"

namespace planish {
namespace {

struct Preset {
    std::string key, act, weight;
    std::string members;
};

/// Members are separated by `; `: METHOD [NAME=VALUE]…, which is also the candidate's name. A leading * marks what --effort quick
/// leaves out; `NAME @ ACT [WEIGHT]` is the identity under specs of its own.
const std::vector<Preset> kPresets = {
    {"w8a8", "int8:token", "int8:row",
     "none; none at int8:channel @ int8:channel; clip; llm_int8; smoothquant alpha=.5; smoothquant search=output; smoothquant "
     "stat=rms; "
     "os_plus; hadamard; zigzag_hadamard; smooth_hadamard; *omniquant"},
    {"w4a8", "int8:token", "int4:group128",
     "none; none at int8:channel @ int8:channel; clip; smoothquant alpha=.5; smoothquant search=output; smoothquant stat=rms; "
     "os_plus; "
     "hadamard; zigzag_hadamard; smooth_hadamard; *omniquant; awq; *svdquant"},
    {"w4a4", "int4:token", "int4:row",
     "none; smoothquant search=output; smoothquant stat=rms; block_hadamard; hadamard seeds=8; smooth_hadamard; zigzag_hadamard; "
     "duquant; "
     "wush; svdquant; *spinquant; *flatquant"},
    {"w4a16", "none", "int4:group128:asym",
     "none; clip target=weight; awq; awq duo=both; magr; *omniquant let=off; *svdquant; hadamard"},
    {"mxfp4", "mxfp4", "mxfp4",
     "none; smoothquant stat=rms; block_hadamard block=32; smooth_hadamard block=32; zigzag_hadamard; wush; *flatquant"},
    {"nvfp4", "nvfp4", "nvfp4",
     "none; none with dialect=four_over_six @ nvfp4:dialect=four_over_six nvfp4:dialect=four_over_six; smoothquant stat=rms; "
     "smooth_hadamard; block_hadamard block=16; wush; *svdquant"},
    {"o1", "int8:token", "int8:tensor", "none; smoothquant alpha=.5; smoothquant search=output"},
    {"o2", "int8:tensor", "int8:tensor", "none; smoothquant alpha=.5; smoothquant search=output"},
    {"o3", "int8:tensor:static", "int8:tensor", "none; smoothquant alpha=.5; smoothquant search=output"},
};

struct Member {
    std::string text, act, weight;
    bool full = false; ///< left out of --effort quick
};

std::vector<std::string> wordsOf(const std::string &text)
{
    std::istringstream stream(text);
    std::vector<std::string> words;
    for (std::string word; stream >> word;)
        words.push_back(word);
    return words;
}

Member memberOf(const Preset &preset, std::string text)
{
    Member member{.text = {}, .act = preset.act, .weight = preset.weight, .full = text.starts_with('*')};
    if (member.full)
        text.erase(0, 1);
    const std::size_t at = text.find(" @ ");
    member.text = text.substr(0, at);
    if (at != std::string::npos) {
        const std::vector<std::string> specs = wordsOf(text.substr(at + 3));
        member.act = specs.front();
        member.weight = specs.size() > 1 ? specs[1] : preset.weight;
    }
    return member;
}

std::vector<Member> membersOf(const Preset &preset)
{
    std::vector<Member> members;
    for (std::size_t begin = 0; begin < preset.members.size();) {
        const std::size_t end = std::min(preset.members.find("; ", begin), preset.members.size());
        members.push_back(memberOf(preset, preset.members.substr(begin, end - begin)));
        begin = end + 2;
    }
    return members;
}

Expected<Candidate> candidateOf(const Member &member)
{
    std::vector<std::string> words = wordsOf(member.text);
    const std::string method = words.front();
    words.erase(words.begin());
    Candidate candidate{.name = member.text};
    auto chain = parseChain(method, method == "none" ? std::vector<std::string>() : words); // behind `none` stands a description
    if (!chain)
        return tl::make_unexpected(chain.error());
    candidate.chain = std::move(*chain);
    if (!findMethod(candidate.chain.front().method))
        candidate.unavailable = "not_built";
    auto act = parseQuantSpec(member.act, Role::Activation);
    auto weight = parseQuantSpec(member.weight, Role::Weight);
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
    for (const Preset &preset : kPresets)
        names.push_back(preset.key);
    return names;
}

Expected<std::vector<Candidate>> presetCandidates(std::string_view key, Effort effort)
{
    const auto preset = std::ranges::find(kPresets, key, &Preset::key);
    if (preset == kPresets.end())
        return usageError("--preset " + std::string(key), "unknown preset",
                          "one of w8a8, w4a8, w4a4, w4a16, mxfp4, nvfp4, o1, o2, o3, nearest: " +
                              nearestText(key, presetNames()));
    std::vector<Candidate> candidates;
    for (const Member &member : membersOf(*preset)) {
        if (effort == Effort::Quick && member.full)
            continue;
        auto candidate = candidateOf(member);
        if (!candidate)
            return tl::make_unexpected(candidate.error());
        candidates.push_back(std::move(*candidate));
    }
    return candidates;
}

} // namespace planish
