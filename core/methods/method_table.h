// The table of methods: explicit rows, no self-registration. A new method is one file and one row here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/methods/method.h"

namespace planish {

std::span<const MethodRow> methodTable();
const MethodRow *findMethod(std::string_view key);

/// All public keys of cli.md, also those whose row does not exist in this build.
std::span<const std::string_view> publicMethodKeys();

/// One member of a chain: method and parameters as asked.
struct ChainMember {
    std::string method;
    std::vector<std::pair<std::string, std::string>> set; ///< as typed, name without prefix
};

/// A candidate: chain, seed and specs. Candidate 0 is always the identity `none`.
struct Candidate {
    std::string name;
    std::vector<ChainMember> chain;
    std::uint64_t seed = 0;
    QuantSpec act, weight;
    std::optional<QuantSpec> kv;
    std::vector<std::string> edges;  ///< globs, empty = all
    std::string selectedOn;          ///< "held_out" when adopted from a sweep
    std::string unavailable;         ///< "not_built" for a preset member without a row
};

/// `A+B` and `--set NAME=VALUE` (B.alpha, 2.alpha, bare) -> a chain. Unknown names: Usage error with nearest names.
Expected<std::vector<ChainMember>> parseChain(std::string_view methods, const std::vector<std::string> &sets);
/// Text form of a chain: "A+B".
std::string chainText(const std::vector<ChainMember> &chain);
/// Validated parameters of a member with defaults filled in; unknown name or value out of range: Usage error.
Expected<Params> resolveParams(const MethodRow &row, const ChainMember &member);

} // namespace planish
