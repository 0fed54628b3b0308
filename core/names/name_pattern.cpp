#include "core/names/name_pattern.h"

#include <charconv>

namespace planish {

namespace {

bool isDigit(char c)
{
    return c >= '0' && c <= '9';
}

std::string replaceAll(std::string text, std::string_view what, const std::string &with)
{
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
        text.replace(at, what.size(), with);
    return text;
}

std::string fillOne(std::string_view pattern, PatternNumbers numbers)
{
    std::string text(pattern);
    const bool previous = text.find("{l-1}") != std::string::npos;
    if (previous && numbers.layer < 1)
        return {};
    if (text.find("{l}") != std::string::npos && numbers.layer < 0)
        return {};
    if (text.find("{e}") != std::string::npos && numbers.expert < 0)
        return {};
    text = replaceAll(std::move(text), "{l-1}", std::to_string(numbers.layer - 1));
    text = replaceAll(std::move(text), "{l}", std::to_string(numbers.layer));
    return replaceAll(std::move(text), "{e}", std::to_string(numbers.expert));
}

bool parseNumber(std::string_view text, std::int64_t &value)
{
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    return !text.empty() && result.ec == std::errc() && result.ptr == text.data() + text.size();
}

} // namespace

std::optional<PatternNumbers> matchPattern(std::string_view pattern, std::string_view name)
{
    PatternNumbers numbers;
    std::size_t at = 0;
    for (std::size_t p = 0; p < pattern.size();) {
        const bool layer = pattern.substr(p, 3) == "{l}";
        if (layer || pattern.substr(p, 3) == "{e}") {
            const std::size_t begin = at;
            while (at < name.size() && isDigit(name[at]))
                ++at;
            std::int64_t value = -1;
            if (!parseNumber(name.substr(begin, at - begin), value))
                return std::nullopt;
            std::int64_t &slot = layer ? numbers.layer : numbers.expert;
            if (slot >= 0 && slot != value)
                return std::nullopt;
            slot = value;
            p += 3;
            continue;
        }
        if (at >= name.size() || name[at] != pattern[p])
            return std::nullopt;
        ++at;
        ++p;
    }
    if (at != name.size())
        return std::nullopt;
    return numbers;
}

std::string fillPattern(std::string_view pattern, PatternNumbers numbers)
{
    constexpr std::string_view kSeparator = " | ";
    while (true) {
        const std::size_t bar = pattern.find(kSeparator);
        std::string filled = fillOne(pattern.substr(0, bar), numbers);
        if (!filled.empty() || bar == std::string_view::npos)
            return filled;
        pattern.remove_prefix(bar + kSeparator.size());
    }
}

bool splitRowRange(std::string_view text, std::string &name, std::int64_t &begin, std::int64_t &end)
{
    begin = 0;
    end = -1;
    name = std::string(text);
    if (text.empty() || text.back() != ']')
        return true;
    const std::size_t open = text.rfind('[');
    if (open == std::string_view::npos)
        return false;
    const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
    const std::size_t colon = inside.find(':');
    if (colon == std::string_view::npos || !parseNumber(inside.substr(0, colon), begin) ||
        !parseNumber(inside.substr(colon + 1), end))
        return false;
    name = std::string(text.substr(0, open));
    return begin >= 0 && end > begin;
}

std::string biasOfStored(std::string_view weightName)
{
    for (const auto &[weight, bias] : {std::pair<std::string_view, std::string_view>{".weight", ".bias"}, {".gamma", ".beta"}})
        if (weightName.ends_with(weight))
            return std::string(weightName.substr(0, weightName.size() - weight.size())) + std::string(bias);
    return {};
}

} // namespace planish
