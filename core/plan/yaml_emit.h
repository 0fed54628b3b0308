// Text of a YAML document from a JSON tree: block style, short leaves in flow style, numbers with 17 digits, every text that another
// reader could take for a number or a boolean quoted.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace planish {

/// Shortest form that reads back to the same double, always with a dot so that YAML 1.1 reads a float. Non-finite gives "null".
std::string yamlNumber(double value);
std::string yamlText(const std::string &text);
std::string toYaml(const nlohmann::ordered_json &document);

} // namespace planish
