#include "core/io/layouts/attribute_reader.h"

#include <cmath>
#include <type_traits>

#include "core/io/printable.h"

namespace planish {

namespace {

template <class T> std::string oneText(const T &value)
{
    if constexpr (std::is_same_v<T, std::string>)
        return std::string("'").append(printable(value.substr(0, 80))).append("'");
    else
        return std::to_string(value);
}

template <class T> std::string listText(const std::vector<T> &values)
{
    constexpr std::size_t kShown = 4;
    std::string text = "[";
    for (std::size_t i = 0; i < values.size() && i < kShown; ++i)
        text.append(i > 0 ? ", " : "").append(oneText(values[i]));
    return text.append(values.size() > kShown ? ", …]" : "]");
}

} // namespace

std::string attributeText(const AttributeValue &value)
{
    return std::visit(
        [](const auto &held) {
            using T = std::decay_t<decltype(held)>;
            if constexpr (std::is_same_v<T, std::string> || std::is_arithmetic_v<T>)
                return oneText(held);
            else
                return listText(held);
        },
        value);
}

const AttributeValue *AttributeReader::find(std::string_view key) const
{
    const auto found = m_attributes.find(std::string(key));
    return found == m_attributes.end() ? nullptr : &found->second;
}

bool AttributeReader::has(std::string_view key) const
{
    return find(key) != nullptr;
}

void AttributeReader::wrongKind(std::string_view key, std::string_view expected) const
{
    m_notes.push_back(printable(m_path) + ": attribute " + std::string(key) + " is " + attributeText(*find(key)) + ", expected " +
                      std::string(expected) + "; ignored");
}

std::string AttributeReader::text(std::string_view key, std::string fallback) const
{
    const AttributeValue *value = find(key);
    if (value == nullptr)
        return fallback;
    if (const auto *text = std::get_if<std::string>(value))
        return *text;
    if (const auto *list = std::get_if<std::vector<std::string>>(value); list != nullptr && list->size() == 1)
        return list->front();
    wrongKind(key, "a text");
    return fallback;
}

std::int64_t AttributeReader::integer(std::string_view key, std::int64_t fallback) const
{
    const AttributeValue *value = find(key);
    if (value == nullptr)
        return fallback;
    if (const auto *number = std::get_if<std::int64_t>(value))
        return *number;
    if (const auto *list = std::get_if<std::vector<std::int64_t>>(value); list != nullptr && list->size() == 1)
        return list->front();
    constexpr double kExact = 9007199254740992.0;
    if (const auto *real = std::get_if<double>(value); real != nullptr && std::trunc(*real) == *real && std::fabs(*real) < kExact)
        return static_cast<std::int64_t>(*real);
    wrongKind(key, "an integer");
    return fallback;
}

double AttributeReader::number(std::string_view key, double fallback) const
{
    const AttributeValue *value = find(key);
    if (value == nullptr)
        return fallback;
    if (const auto *real = std::get_if<double>(value))
        return *real;
    if (const auto *list = std::get_if<std::vector<double>>(value); list != nullptr && list->size() == 1)
        return list->front();
    if (const auto *whole = std::get_if<std::int64_t>(value))
        return static_cast<double>(*whole);
    wrongKind(key, "a number");
    return fallback;
}

std::vector<std::string> AttributeReader::texts(std::string_view key) const
{
    const AttributeValue *value = find(key);
    if (value == nullptr)
        return {};
    if (const auto *list = std::get_if<std::vector<std::string>>(value))
        return *list;
    if (const auto *text = std::get_if<std::string>(value))
        return text->empty() ? std::vector<std::string>{} : std::vector<std::string>{*text};
    // An empty list has no element type: h5py writes it as float64 [0].
    if (const auto *reals = std::get_if<std::vector<double>>(value); reals != nullptr && reals->empty())
        return {};
    if (const auto *whole = std::get_if<std::vector<std::int64_t>>(value); whole != nullptr && whole->empty())
        return {};
    wrongKind(key, "a list of names");
    return {};
}

} // namespace planish
