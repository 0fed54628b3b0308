// Parameters of one chain member: text to values, checked against the rows of the method (parameters.md "Rules").
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>

#include "core/methods/method_table.h"

namespace planish {
namespace {

std::string joined(const std::vector<std::string> &words)
{
    std::string text;
    for (const std::string &word : words)
        text += (text.empty() ? "" : ", ") + word;
    return text;
}

std::string shortNumber(double value)
{
    std::array<char, 32> buffer{};
    const auto done = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    return {buffer.data(), done.ptr};
}

std::string expectedText(const ParamRow &row)
{
    if (row.type == ParamType::Enum)
        return "one of " + joined(row.values);
    if (row.type == ParamType::List)
        return "a comma separated list or none";
    std::string text = row.type == ParamType::Integer ? "an integer in " : "a number in ";
    text += shortNumber(row.min) + ".." + shortNumber(row.max);
    return row.values.empty() ? text : text + ", or " + joined(row.values);
}

template <class T> bool parseWhole(const std::string &text, T &value)
{
    const auto done = std::from_chars(text.data(), text.data() + text.size(), value);
    return done.ec == std::errc() && done.ptr == text.data() + text.size() && !text.empty();
}

std::optional<std::string> enumValue(const ParamRow &row, const std::string &text)
{
    for (const std::string &alias : row.aliases) {
        const std::size_t equals = alias.find('=');
        if (equals != std::string::npos && alias.substr(0, equals) == text)
            return alias.substr(equals + 1);
    }
    for (const std::string &value : row.values) {
        if (value == text)
            return value;
        const std::size_t path = value.find(":PATH");
        if (path != std::string::npos && text.size() > path + 1 && text.starts_with(value.substr(0, path + 1)))
            return text;
    }
    return std::nullopt;
}

std::vector<std::string> listValue(const std::string &text)
{
    std::vector<std::string> items;
    if (text == "none" || text.empty())
        return items;
    std::istringstream stream(text);
    for (std::string item; std::getline(stream, item, ',');)
        items.push_back(item);
    return items;
}

std::optional<FieldValue> parseValue(const ParamRow &row, const std::string &text)
{
    if (row.type == ParamType::List)
        return FieldValue(listValue(text));
    if (row.type == ParamType::Enum) {
        const auto value = enumValue(row, text);
        return value ? std::optional<FieldValue>(*value) : std::nullopt;
    }
    if (std::ranges::find(row.values, text) != row.values.end())
        return FieldValue(text);
    if (row.type == ParamType::Integer) {
        std::int64_t whole = 0;
        if (!parseWhole(text, whole) || static_cast<double>(whole) < row.min || static_cast<double>(whole) > row.max)
            return std::nullopt;
        return FieldValue(whole);
    }
    double number = 0;
    if (!parseWhole(text, number) || !std::isfinite(number) || number < row.min || number > row.max)
        return std::nullopt;
    return FieldValue(number);
}

} // namespace

double Params::real(const std::string &name) const
{
    const auto found = m_fields.find(name);
    if (found == m_fields.end())
        return std::numeric_limits<double>::quiet_NaN();
    if (const auto *number = std::get_if<double>(&found->second))
        return *number;
    if (const auto *whole = std::get_if<std::int64_t>(&found->second))
        return static_cast<double>(*whole);
    return std::numeric_limits<double>::quiet_NaN();
}

std::int64_t Params::integer(const std::string &name) const
{
    const auto found = m_fields.find(name);
    if (found == m_fields.end())
        return 0;
    if (const auto *whole = std::get_if<std::int64_t>(&found->second))
        return *whole;
    const auto *number = std::get_if<double>(&found->second);
    return number ? static_cast<std::int64_t>(*number) : 0;
}

std::string Params::word(const std::string &name) const
{
    const auto found = m_fields.find(name);
    const auto *text = found == m_fields.end() ? nullptr : std::get_if<std::string>(&found->second);
    return text ? *text : std::string();
}

bool Params::isWord(const std::string &name, std::string_view word) const
{
    return this->word(name) == word;
}

std::vector<std::string> Params::list(const std::string &name) const
{
    const auto found = m_fields.find(name);
    const auto *items = found == m_fields.end() ? nullptr : std::get_if<std::vector<std::string>>(&found->second);
    return items ? *items : std::vector<std::string>();
}

Expected<Params> resolveParams(const MethodRow &row, const ChainMember &member)
{
    Fields fields;
    for (const ParamRow &param : row.params)
        fields[param.name] = parseValue(param, param.defaultValue).value_or(FieldValue(param.defaultValue));
    std::vector<std::string> names;
    for (const ParamRow &param : row.params)
        names.push_back(param.name);
    std::vector<std::string> seen;
    for (const auto &[name, text] : member.set) {
        const auto param = std::ranges::find(row.params, name, &ParamRow::name);
        if (param == row.params.end())
            return usageError(row.key, "unknown parameter " + name, names.empty() ? "no parameters" : "one of " + joined(names));
        if (std::ranges::find(seen, name) != seen.end())
            return usageError(row.key + "." + name, "given twice", "one value");
        seen.push_back(name);
        auto value = parseValue(*param, text);
        if (!value)
            return usageError(row.key + "." + name, "value " + text + " is not accepted", expectedText(*param));
        fields[name] = std::move(*value);
    }
    return Params(std::move(fields));
}

} // namespace planish
