// Patterns with numbers in them: "layers.{l}.experts.{e}.up_proj". Matching a name against one and filling one in. names.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planish {

/// The numbers a pattern stands for; -1 = the pattern has no such part.
struct PatternNumbers {
    std::int64_t layer = -1, expert = -1;
    bool operator==(const PatternNumbers &) const = default;
};

/// The numbers when the whole `name` fits; `{l}` and `{e}` stand for decimal digits.
std::optional<PatternNumbers> matchPattern(std::string_view pattern, std::string_view name);

/// `{l}`, `{l-1}` and `{e}` filled in. Alternatives are separated by " | ": the first whose numbers exist is taken, so
/// "layers.{l-1}.norm | embeddings.norm" is the embedding's norm at layer 0. Empty when none can be filled.
std::string fillPattern(std::string_view pattern, PatternNumbers numbers);

/// Splits "name[a:b]" into the name and its rows; no range gives 0 and -1. False when the brackets hold no range.
bool splitRowRange(std::string_view text, std::string &name, std::int64_t &begin, std::int64_t &end);

/// The name of the bias that goes with a weight's stored name: `.bias` for `.weight`, `.beta` for `.gamma`; empty when neither
/// ends it.
std::string biasOfStored(std::string_view weightName);

} // namespace planish
