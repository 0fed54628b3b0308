#include "core/io/layouts/axis.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace planish {

namespace {

struct AxisWord {
    std::string_view word;
    Axis axis;
};

constexpr std::array<AxisWord, 36> kWords{
    {{"layer", Axis::Layer},         {"layers", Axis::Layer},     {"batch", Axis::Request},    {"request", Axis::Request},
     {"requests", Axis::Request},    {"sample", Axis::Request},   {"samples", Axis::Request},  {"prompt", Axis::Request},
     {"token", Axis::Token},         {"tokens", Axis::Token},     {"seq", Axis::Token},        {"sequence", Axis::Token},
     {"pos", Axis::Token},           {"position", Axis::Token},   {"time", Axis::Token},       {"frame", Axis::Token},
     {"row", Axis::Token},           {"rows", Axis::Token},       {"obs", Axis::Token},        {"head", Axis::Head},
     {"heads", Axis::Head},          {"head_dim", Axis::HeadDim}, {"d_head", Axis::HeadDim},   {"hidden", Axis::Channel},
     {"hidden_size", Axis::Channel}, {"channel", Axis::Channel},  {"channels", Axis::Channel}, {"feature", Axis::Channel},
     {"features", Axis::Channel},    {"dim", Axis::Channel},      {"d_model", Axis::Channel},  {"neuron", Axis::Channel},
     {"neurons", Axis::Channel},     {"in", Axis::Channel},       {"out", Axis::Output},       {"output", Axis::Output}}};

AxisUse useOf(Axis axis, std::uint64_t layer)
{
    switch (axis) {
    case Axis::Layer:
        return {AxisUse::Role::Fixed, layer};
    case Axis::Request:
    case Axis::Token:
    case Axis::Output:
        return {AxisUse::Role::Row, 0};
    default:
        return {AxisUse::Role::Channel, 0};
    }
}

} // namespace

std::optional<Axis> axisByWord(std::string_view word)
{
    std::string lower(word);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto *const found = std::find_if(kWords.begin(), kWords.end(), [&](const AxisWord &row) { return row.word == lower; });
    return found == kWords.end() ? std::nullopt : std::optional(found->axis);
}

std::optional<Axes> axesByWords(const std::vector<std::string> &words)
{
    Axes axes;
    for (const std::string &word : words) {
        const std::optional<Axis> axis = axisByWord(word);
        if (!axis)
            return std::nullopt;
        axes.push_back(*axis);
    }
    return axes;
}

std::string_view wordOf(Axis axis)
{
    constexpr std::array<std::string_view, 7> kNames{"layer", "batch", "token", "head", "head_dim", "channel", "out"};
    return kNames[static_cast<std::size_t>(axis)];
}

std::string axesText(const Axes &axes)
{
    std::string text;
    for (const Axis axis : axes)
        text.append(text.empty() ? "" : ", ").append(wordOf(axis));
    return text;
}

DataPiece pieceOf(const DatasetInfo &dataset, const Axes &axes, std::uint64_t layer)
{
    DataPiece piece;
    piece.dataset = dataset;
    for (const Axis axis : axes)
        piece.axes.push_back(useOf(axis, layer));
    return piece;
}

} // namespace planish
