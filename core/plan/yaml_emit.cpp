#include "core/plan/yaml_emit.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "core/plan/strict_yaml.h"

namespace planish {

namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kFlowWidth = 110;

bool plainCharacters(const std::string &text)
{
    const auto first = static_cast<unsigned char>(text.front());
    if (!std::isalpha(first) && first != '_' && first != '/')
        return false;
    return std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return std::isalnum(c) || c == '_' || c == '.' || c == '/' || c == '+' || c == '-' || c == '*';
    });
}

std::string scalarText(const Json &value)
{
    switch (value.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::boolean: return value.get<bool>() ? "true" : "false";
    case Json::value_t::number_integer: return std::to_string(value.get<std::int64_t>());
    case Json::value_t::number_unsigned: return std::to_string(value.get<std::uint64_t>());
    case Json::value_t::number_float: return yamlNumber(value.get<double>());
    default: return yamlText(value.get<std::string>());
    }
}

std::string flowText(const Json &value)
{
    std::string text;
    if (value.is_object()) {
        for (const auto &[key, item] : value.items())
            text += (text.empty() ? "" : ", ") + yamlText(key) + ": " + flowText(item);
        return "{" + text + "}";
    }
    if (value.is_array()) {
        for (const Json &item : value)
            text += (text.empty() ? "" : ", ") + flowText(item);
        return "[" + text + "]";
    }
    return scalarText(value);
}

bool leavesOnly(const Json &value)
{
    return std::all_of(value.begin(), value.end(), [](const Json &item) { return !item.is_structured() || item.empty(); });
}

/// Scalars, lists of scalars (wrapped by nobody, so one line) and maps short enough for one line.
bool fitsFlow(const Json &value)
{
    if (!value.is_structured() || value.empty())
        return true;
    if (value.is_array() && leavesOnly(value))
        return true;
    return value.is_object() && leavesOnly(value) && flowText(value).size() <= kFlowWidth;
}

void emitBlock(const Json &value, std::size_t indent, std::string &out)
{
    const std::string pad(indent, ' ');
    if (value.is_object()) {
        for (const auto &[key, item] : value.items()) {
            out.append(pad).append(yamlText(key)).append(":");
            if (fitsFlow(item)) {
                out.append(" ").append(flowText(item)).append("\n");
            } else {
                out += "\n";
                emitBlock(item, indent + 2, out);
            }
        }
        return;
    }
    for (const Json &item : value) {
        if (fitsFlow(item)) {
            out.append(pad).append("- ").append(flowText(item)).append("\n");
            continue;
        }
        std::string inner;
        emitBlock(item, indent + 2, inner);
        inner[indent] = '-';
        out += inner;
    }
}

} // namespace

std::string yamlNumber(double value)
{
    if (!std::isfinite(value))
        return "null";
    char buffer[40];
    const auto [end, code] = std::to_chars(buffer, buffer + sizeof buffer, value);
    std::string text(buffer, end);
    const std::size_t e = text.find('e');
    if (text.find('.') == std::string::npos)
        text.insert(e == std::string::npos ? text.size() : e, ".0");
    return text;
}

std::string yamlText(const std::string &text)
{
    YamlNode plain;
    plain.kind = YamlNode::Kind::Scalar;
    plain.text = text;
    if (!text.empty() && plainCharacters(text) && kindOf(plain) == ScalarKind::Text)
        return text;
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string toYaml(const nlohmann::ordered_json &document)
{
    std::string out;
    emitBlock(document, 0, out);
    return out;
}

} // namespace planish
