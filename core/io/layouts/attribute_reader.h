// Typed reading of attributes: a value of the wrong kind is ignored and noted with its path, never guessed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/file_structure.h"

namespace planish {

/// Borrows attributes and notes for the length of one call.
class AttributeReader {
public:
    AttributeReader(std::string path, const Attributes &attributes, std::vector<std::string> &notes)
        : m_path(std::move(path)), m_attributes(attributes), m_notes(notes)
    {
    }
    bool has(std::string_view key) const;
    std::string text(std::string_view key, std::string fallback = {}) const;
    std::int64_t integer(std::string_view key, std::int64_t fallback) const;
    double number(std::string_view key, double fallback) const;
    bool flag(std::string_view key) const { return integer(key, 0) != 0; }
    std::vector<std::string> texts(std::string_view key) const;

private:
    const AttributeValue *find(std::string_view key) const;
    void wrongKind(std::string_view key, std::string_view expected) const;

    std::string m_path;
    const Attributes &m_attributes;
    std::vector<std::string> &m_notes;
};

/// An attribute in words for messages: "'two'", "5", "[1, 2]".
std::string attributeText(const AttributeValue &value);

} // namespace planish
