// A YAML document as a plain tree with lines, read by the event parser: anchors, aliases, duplicate keys and excess of size or
// depth are refused before anything is expanded. The readers on top never accept a scalar of the wrong type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/error.h"

namespace planish {

struct YamlNode {
    enum class Kind { Null, Scalar, Sequence, Map } kind = Kind::Null;
    std::string text;              ///< of a scalar
    bool quoted = false;
    int line = 0;                  ///< from 1
    std::vector<std::string> keys; ///< of a map, in file order
    std::vector<YamlNode> items;   ///< of a sequence or the values of a map

    const YamlNode *find(std::string_view key) const;
    bool isMap() const { return kind == Kind::Map; }
    bool isSequence() const { return kind == Kind::Sequence; }
    bool isNull() const { return kind == Kind::Null; }
};

/// Parses one document. Errors name file, line and the path of keys so far.
Expected<YamlNode> parseStrictYaml(const std::string &file, std::string_view text);

/// What a plain scalar is under YAML 1.1 and 1.2 together; a quoted one is always text.
enum class ScalarKind { Null, Boolean, AmbiguousBoolean, Integer, Real, NonFinite, OddNumber, Text };
ScalarKind kindOf(const YamlNode &scalar);

/// First error of a reading pass, shared by all readers of one file; later reads become harmless.
struct YamlErrors {
    std::string file;
    std::string scope; ///< edge at hand, added to every path
    std::optional<Error> first;
    void add(const std::string &path, const std::string &what, const std::string &expected, const std::string &rule = {});
};

/// Reads one node by type; every mismatch is an error with its path. Absent optional values give nullopt.
class YamlReader {
public:
    YamlReader(YamlErrors &errors, const YamlNode *node, std::string path) : m_errors(&errors), m_node(node), m_path(std::move(path)) {}

    bool present() const { return m_node && !m_node->isNull(); }
    bool given() const { return m_node != nullptr; } ///< also an explicit null
    const YamlNode *node() const { return m_node; }
    const std::string &path() const { return m_path; }
    YamlErrors &errors() const { return *m_errors; }
    bool isMap() const { return m_node && m_node->isMap(); }
    bool isSequence() const { return m_node && m_node->isSequence(); }

    YamlReader operator[](std::string_view key) const;          ///< absent reader when the key is missing
    std::vector<YamlReader> items() const;                      ///< of a sequence; absent gives none, else an error
    std::vector<std::pair<std::string, YamlReader>> entries() const; ///< of a map, x- keys left out
    /// Every key must be one of these or start with `x-`.
    void onlyKeys(std::initializer_list<std::string_view> allowed) const;
    void requireKeys(std::initializer_list<std::string_view> needed) const;

    std::string text() const;                 ///< required
    std::string textOr(std::string fallback) const;
    std::int64_t integer() const;             ///< required
    std::int64_t integerOr(std::int64_t fallback) const;
    std::uint64_t unsignedOr(std::uint64_t fallback) const;
    double number() const;                    ///< required, finite
    double numberOr(double fallback) const;
    std::optional<double> optionalNumber() const;
    bool booleanOr(bool fallback) const;
    std::vector<std::string> texts() const;   ///< list of texts, absent = empty
    std::vector<std::string> idTexts() const; ///< list of texts or integers
    void fail(const std::string &what, const std::string &expected, const std::string &rule = {}) const;

private:
    YamlErrors *m_errors;
    const YamlNode *m_node;
    std::string m_path;
};

} // namespace planish
