#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "core/plan/strict_yaml.h"

namespace planish {

namespace {

std::string lowered(std::string text)
{
    for (char &c : text)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

bool allDigits(std::string_view text)
{
    return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

std::string_view withoutSign(std::string_view text)
{
    if (!text.empty() && (text.front() == '-' || text.front() == '+'))
        text.remove_prefix(1);
    return text;
}

/// Digits with one dot and an optional exponent: what YAML 1.1 and 1.2 both read as a float.
bool isReal(std::string_view text)
{
    text = withoutSign(text);
    const std::size_t dot = text.find('.');
    if (dot == std::string_view::npos || dot == 0 || !allDigits(text.substr(0, dot)))
        return false;
    std::string_view rest = text.substr(dot + 1);
    const std::size_t e = rest.find_first_of("eE");
    const std::string_view fraction = rest.substr(0, e);
    if (!fraction.empty() && !allDigits(fraction))
        return false;
    if (e == std::string_view::npos)
        return true;
    return allDigits(withoutSign(rest.substr(e + 1)));
}

/// Numbers of one YAML version only: 1e3, 0o200, 0x1f, 010, 1_000, .5, 1:30.
bool isOddNumber(std::string_view text)
{
    text = withoutSign(text);
    if (text.empty())
        return false;
    const bool startsLikeNumber = std::isdigit(static_cast<unsigned char>(text[0])) || (text[0] == '.' && text.size() > 1);
    if (!startsLikeNumber)
        return false;
    if (text.starts_with("0o") || text.starts_with("0x") || text.starts_with("0b"))
        return true;
    double value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc::invalid_argument && end == text.data() + text.size())
        return true;
    return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) || c == '_' || c == ':'; });
}

} // namespace

ScalarKind kindOf(const YamlNode &scalar)
{
    if (scalar.isNull())
        return ScalarKind::Null;
    if (scalar.quoted)
        return ScalarKind::Text;
    const std::string word = lowered(scalar.text);
    if (word.empty() || word == "null" || word == "~")
        return ScalarKind::Null;
    if (word == "true" || word == "false")
        return ScalarKind::Boolean;
    static constexpr std::array<std::string_view, 6> kWords = {"yes", "no", "on", "off", "y", "n"};
    if (std::find(kWords.begin(), kWords.end(), word) != kWords.end())
        return ScalarKind::AmbiguousBoolean;
    const std::string_view digits = withoutSign(word);
    if (digits == ".inf" || digits == ".nan" || digits == "inf" || digits == "nan" || digits == "infinity")
        return ScalarKind::NonFinite;
    if (allDigits(digits) && (digits.size() == 1 || digits[0] != '0'))
        return ScalarKind::Integer;
    if (isReal(word))
        return ScalarKind::Real;
    return isOddNumber(word) ? ScalarKind::OddNumber : ScalarKind::Text;
}

void YamlErrors::add(const std::string &path, const std::string &what, const std::string &expected, const std::string &rule)
{
    if (first)
        return;
    const std::string place = path.empty() || scope.empty() ? path : path + " (" + scope + ")";
    first = Error{rule.empty() ? ErrorCode::Data : ErrorCode::Refused, file, place.empty() ? what : place + ": " + what, expected, rule};
}

void YamlReader::fail(const std::string &what, const std::string &expected, const std::string &rule) const
{
    m_errors->add(m_path, what, expected, rule);
}

YamlReader YamlReader::operator[](std::string_view key) const
{
    const std::string path = m_path.empty() ? std::string(key) : m_path + "." + std::string(key);
    if (m_node && !m_node->isMap() && !m_node->isNull())
        fail("is not a map", "expected a map with the key " + std::string(key));
    return {*m_errors, m_node && m_node->isMap() ? m_node->find(key) : nullptr, path};
}

std::vector<YamlReader> YamlReader::items() const
{
    std::vector<YamlReader> list;
    if (!present())
        return list;
    if (!m_node->isSequence()) {
        fail("is not a list", "expected a list");
        return list;
    }
    for (std::size_t i = 0; i < m_node->items.size(); ++i)
        list.emplace_back(*m_errors, &m_node->items[i], m_path + "[" + std::to_string(i) + "]");
    return list;
}

std::vector<std::pair<std::string, YamlReader>> YamlReader::entries() const
{
    std::vector<std::pair<std::string, YamlReader>> list;
    if (!present())
        return list;
    if (!m_node->isMap()) {
        fail("is not a map", "expected a map");
        return list;
    }
    for (const std::string &key : m_node->keys) {
        if (!key.starts_with("x-"))
            list.emplace_back(key, (*this)[key]);
    }
    return list;
}

void YamlReader::onlyKeys(std::initializer_list<std::string_view> allowed) const
{
    for (const auto &[key, reader] : entries()) {
        if (std::find(allowed.begin(), allowed.end(), key) == allowed.end()) {
            std::string list;
            for (std::string_view word : allowed)
                list += (list.empty() ? "" : ", ") + std::string(word);
            reader.fail("unknown key", "expected one of " + list);
        }
    }
}

void YamlReader::requireKeys(std::initializer_list<std::string_view> needed) const
{
    for (std::string_view key : needed) {
        if (!(*this)[key].given())
            (*this)[key].fail("is missing", "expected this key in a planish-plan/1 manifest");
    }
}

std::string YamlReader::text() const
{
    if (!given()) {
        fail("is missing", "expected a text");
        return {};
    }
    if (m_node->kind != YamlNode::Kind::Scalar || kindOf(*m_node) != ScalarKind::Text) {
        fail("is not a text" + (m_node->text.empty() ? std::string() : ": " + m_node->text), "expected a text (quoted where it looks like a number or a boolean)");
        return {};
    }
    return m_node->text;
}

std::string YamlReader::textOr(std::string fallback) const
{
    return present() ? text() : std::move(fallback);
}

std::int64_t YamlReader::integer() const
{
    if (!given()) {
        fail("is missing", "expected an integer");
        return 0;
    }
    std::int64_t value = 0;
    if (m_node->kind == YamlNode::Kind::Scalar && kindOf(*m_node) == ScalarKind::Integer) {
        std::string_view digits = m_node->text;
        if (digits.front() == '+')
            digits.remove_prefix(1);
        const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (code == std::errc() && end == digits.data() + digits.size())
            return value;
    }
    fail("is not an integer" + (m_node->text.empty() ? std::string() : ": " + m_node->text), "expected a decimal integer");
    return 0;
}

std::int64_t YamlReader::integerOr(std::int64_t fallback) const
{
    return present() ? integer() : fallback;
}

std::uint64_t YamlReader::unsignedOr(std::uint64_t fallback) const
{
    if (!present())
        return fallback;
    std::uint64_t value = 0;
    if (m_node->kind == YamlNode::Kind::Scalar && kindOf(*m_node) == ScalarKind::Integer) {
        const std::string &digits = m_node->text;
        const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (code == std::errc() && end == digits.data() + digits.size())
            return value;
    }
    fail("is not an integer of at least 0" + (m_node->text.empty() ? std::string() : ": " + m_node->text),
         "expected a decimal integer of at least 0");
    return 0;
}

double YamlReader::number() const
{
    if (!given()) {
        fail("is missing", "expected a number");
        return 0;
    }
    const ScalarKind kind = m_node->kind == YamlNode::Kind::Scalar ? kindOf(*m_node) : ScalarKind::Text;
    if (kind == ScalarKind::NonFinite) {
        fail("is not finite: " + m_node->text, "expected a finite number");
        return 0;
    }
    double value = 0;
    if (kind == ScalarKind::Integer || kind == ScalarKind::Real) {
        std::string_view digits = m_node->text;
        if (digits.front() == '+')
            digits.remove_prefix(1);
        const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (code == std::errc() && end == digits.data() + digits.size() && std::isfinite(value))
            return value;
    }
    fail("is not a number" + (m_node->text.empty() ? std::string() : ": " + m_node->text), "expected a finite decimal number");
    return 0;
}

double YamlReader::numberOr(double fallback) const
{
    return present() ? number() : fallback;
}

std::optional<double> YamlReader::optionalNumber() const
{
    return present() ? std::optional(number()) : std::nullopt;
}

bool YamlReader::booleanOr(bool fallback) const
{
    if (!present())
        return fallback;
    if (m_node->kind == YamlNode::Kind::Scalar && kindOf(*m_node) == ScalarKind::Boolean)
        return lowered(m_node->text) == "true";
    fail("is not a boolean" + (m_node->text.empty() ? std::string() : ": " + m_node->text), "expected true or false");
    return fallback;
}

std::vector<std::string> YamlReader::texts() const
{
    std::vector<std::string> list;
    for (const YamlReader &item : items())
        list.push_back(item.text());
    return list;
}

std::vector<std::string> YamlReader::idTexts() const
{
    std::vector<std::string> list;
    for (const YamlReader &item : items()) {
        const bool integer = item.present() && item.node()->kind == YamlNode::Kind::Scalar && kindOf(*item.node()) == ScalarKind::Integer;
        list.push_back(integer ? item.node()->text : item.text());
    }
    return list;
}

} // namespace planish
