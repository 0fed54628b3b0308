// Targets and actions of an intervention from their text, and the place a finding names.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/evaluate/intervention.h"
#include "core/evaluate/sweep.h"

namespace planish {

namespace {

constexpr const char *kTargets = "channels:3,247, tokens:0,128, positions:0, value:R,C, weight:NAME,J,K or finding:ID";
constexpr const char *kActions = "zero, mean, clip=V, preserve, isolate or write_back";

template <class T> bool readNumber(std::string_view text, T &value)
{
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    return code == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// Integers from 0, separated by commas; empty when one is not.
std::vector<std::int64_t> readIndices(std::string_view text)
{
    std::vector<std::int64_t> indices;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        std::int64_t index = -1;
        if (!readNumber(text.substr(begin, end - begin), index) || index < 0)
            return {};
        indices.push_back(index);
        begin = end + 1;
    }
    return indices;
}

std::optional<TargetKind> kindOf(std::string_view word)
{
    constexpr std::pair<std::string_view, TargetKind> kKinds[] = {
        {"channels", TargetKind::Channels}, {"tokens", TargetKind::Tokens}, {"positions", TargetKind::Positions},
        {"value", TargetKind::Value},       {"weight", TargetKind::Weight}, {"finding", TargetKind::Finding}};
    const auto found = std::ranges::find(kKinds, word, [](const auto &entry) { return entry.first; });
    return found == std::end(kKinds) ? std::nullopt : std::optional(found->second);
}

bool readPair(std::string_view text, InterventionTarget &target)
{
    const auto pair = readIndices(text);
    if (pair.size() != 2)
        return false;
    target.row = pair[0];
    target.column = pair[1];
    return true;
}

/// NAME,J,K: a name may hold anything but commas.
bool readWeight(std::string_view text, InterventionTarget &target)
{
    const std::size_t comma = text.find(',');
    if (comma == std::string_view::npos || comma == 0)
        return false;
    target.name = text.substr(0, comma);
    return readPair(text.substr(comma + 1), target);
}

std::int64_t placeIn(const nlohmann::json &where, const char *name)
{
    const auto found = where.find(name);
    return found != where.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
}

InterventionTarget named(TargetKind kind, std::string text)
{
    InterventionTarget target;
    target.kind = kind;
    target.text = std::move(text);
    return target;
}

} // namespace

Expected<InterventionTarget> parseTarget(const std::string &text)
{
    const std::size_t colon = text.find(':');
    const auto kind = kindOf(std::string_view(text).substr(0, colon));
    if (colon == std::string::npos || !kind)
        return usageError("--target " + text, "no such kind of target", kTargets);
    const std::string_view rest = std::string_view(text).substr(colon + 1);
    InterventionTarget target = named(*kind, text);
    bool read = true;
    if (*kind == TargetKind::Finding) {
        target.name = rest;
        read = !rest.empty();
    } else if (*kind == TargetKind::Weight) {
        read = readWeight(rest, target);
    } else if (*kind == TargetKind::Value) {
        read = readPair(rest, target);
    } else {
        target.indices = readIndices(rest);
        read = !target.indices.empty();
    }
    if (!read)
        return usageError("--target " + text, "`" + std::string(rest) + "` names no place", kTargets);
    return target;
}

Expected<InterventionTarget> targetOf(const Finding &finding)
{
    const std::int64_t row = placeIn(finding.where, "row"), channel = placeIn(finding.where, "channel"),
                       column = placeIn(finding.where, "column");
    InterventionTarget target = named(TargetKind::Weight, "finding:" + finding.id);
    const auto consumer = finding.where.find("consumer");
    if (consumer != finding.where.end() && consumer->is_string() && row >= 0 && column >= 0) {
        target.name = consumer->get<std::string>();
        target.row = row;
        target.column = column;
        return target;
    }
    if (row >= 0 && channel >= 0) {
        target.kind = TargetKind::Value;
        target.row = row;
        target.column = channel;
        return target;
    }
    if (row < 0 && channel < 0)
        return usageError(finding.id, "the finding names no channel, row, value or weight", "a finding with a place on the edge");
    target.kind = channel >= 0 ? TargetKind::Channels : TargetKind::Tokens;
    target.indices = {channel >= 0 ? channel : row};
    return target;
}

Expected<InterventionAction> parseAction(const std::string &text)
{
    constexpr std::pair<std::string_view, ActionKind> kWords[] = {{"zero", ActionKind::Zero},
                                                                  {"mean", ActionKind::Mean},
                                                                  {"preserve", ActionKind::Preserve},
                                                                  {"isolate", ActionKind::Isolate},
                                                                  {"write_back", ActionKind::WriteBack}};
    for (const auto &[word, kind] : kWords)
        if (text == word)
            return InterventionAction{kind, 0};
    if (!text.starts_with("clip="))
        return usageError("--action " + text, "no such action", kActions);
    InterventionAction action{ActionKind::Clip, 0};
    if (!readNumber(std::string_view(text).substr(5), action.bound) || !std::isfinite(action.bound) || action.bound < 0)
        return usageError("--action " + text, "no bound", "clip=V with a finite V, not negative");
    return action;
}

std::string textOf(const InterventionAction &action)
{
    switch (action.kind) {
    case ActionKind::Zero:
        return "zero";
    case ActionKind::Mean:
        return "mean";
    case ActionKind::Clip:
        return "clip=" + shortestText(action.bound);
    case ActionKind::Preserve:
        return "preserve";
    case ActionKind::Isolate:
        return "isolate";
    case ActionKind::WriteBack:
        return "write_back";
    }
    return "";
}

} // namespace planish
