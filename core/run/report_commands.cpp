#include "core/run/report_commands.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

namespace planish {

namespace {

std::string shortest(double value)
{
    if (std::isnan(value))
        return "nan";
    char text[40];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

/// A value as --set takes it; empty for values that cannot be typed.
std::string typed(const FieldValue &value)
{
    if (const auto *number = std::get_if<double>(&value))
        return std::isnan(*number) ? std::string() : shortest(*number);
    if (const auto *integer = std::get_if<std::int64_t>(&value))
        return std::to_string(*integer);
    if (const auto *word = std::get_if<std::string>(&value))
        return *word;
    if (const auto *flag = std::get_if<bool>(&value))
        return *flag ? "true" : "false";
    std::string list;
    if (const auto *numbers = std::get_if<std::vector<double>>(&value)) {
        for (const double number : *numbers)
            list += (list.empty() ? "" : ",") + shortest(number);
    } else if (const auto *words = std::get_if<std::vector<std::string>>(&value)) {
        for (const std::string &word : *words)
            list += (list.empty() ? "" : ",") + word;
    }
    return list;
}

Fields defaultsOf(const std::string &method)
{
    const MethodRow *row = findMethod(method);
    auto params = row ? resolveParams(*row, {method, {}}) : Expected<Params>(Params());
    return params ? params->fields() : Fields{};
}

} // namespace

std::string shellWord(const std::string &text)
{
    constexpr std::string_view kPlain = "./_-+=:,@%";
    const bool plain = !text.empty() && std::ranges::all_of(text, [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               kPlain.find(c) != std::string_view::npos;
    });
    if (plain)
        return text;
    std::string quoted = "'";
    for (const char c : text)
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

std::string commandLine(const std::vector<std::string> &words)
{
    std::string line;
    for (const std::string &word : words)
        line += (line.empty() ? "" : " ") + shellWord(word);
    return line;
}

std::string fileFlags(const std::string &file, const std::string &weights)
{
    return shellWord(file) + (weights.empty() ? "" : " --weights " + shellWord(weights));
}

std::string rowFlagsOf(const RowRequest &rows)
{
    const RowRequest standard;
    std::string flags;
    const auto list = [](const std::vector<std::int32_t> &numbers) {
        std::string text;
        for (const std::int32_t number : numbers)
            text += (text.empty() ? "" : ",") + std::to_string(number);
        return text;
    };
    if (rows.calibration != standard.calibration)
        flags += " --calibration " + shortest(rows.calibration);
    if (rows.splitSeed != standard.splitSeed)
        flags += " --split-seed " + std::to_string(rows.splitSeed);
    if (rows.budget != standard.budget)
        flags += " --rows " + (rows.budget < 0 ? std::string("all") : std::to_string(rows.budget));
    if (rows.phase != standard.phase)
        flags += rows.phase == Phase::Decode ? " --phase decode" : " --phase prefill";
    if (!rows.skipPositions.empty())
        flags += " --skip-positions " + list(rows.skipPositions);
    if (!rows.skipIds.empty())
        flags += " --skip-ids " + list(rows.skipIds);
    return flags;
}

std::string evaluateLine(const Assignment &assignment, const std::string &file, const std::string &weights,
                         const RowRequest &rows)
{
    std::string methods, sets;
    for (std::size_t i = 0; i < assignment.chain.size(); ++i) {
        const FittedMember &member = assignment.chain[i];
        methods += (methods.empty() ? "" : "+") + member.method;
        const Fields defaults = defaultsOf(member.method);
        for (const auto &[name, value] : member.params) {
            const auto standard = defaults.find(name);
            const std::string text = typed(value);
            if (text.empty() || (standard != defaults.end() && typed(standard->second) == text))
                continue;
            const std::string prefix = assignment.chain.size() > 1 ? std::to_string(i + 1) + "." : std::string();
            sets += " --set " + shellWord(prefix + name + "=" + text);
        }
    }
    std::string line = "planish-cli evaluate " + fileFlags(file, weights) + " --edge " + shellWord(assignment.edge.value) +
                       " --method " + shellWord(methods.empty() ? "none" : methods) + sets + " --act " +
                       canonicalText(assignment.candidate.act, Role::Activation) + " --weight " +
                       canonicalText(assignment.candidate.weight, Role::Weight);
    if (assignment.candidate.kv)
        line += " --kv " + canonicalText(*assignment.candidate.kv, Role::Activation);
    if (assignment.candidate.seed != 0)
        line += " --seed " + std::to_string(assignment.candidate.seed);
    return line + rowFlagsOf(rows);
}

} // namespace planish
