// QuantSpec: the text form of a quantizer (`int4:group32:dialect=free`), parsed, validated and printed canonically. cli.md
// "QuantSpec".
#pragma once

#include <string>
#include <string_view>

#include "core/io/error.h"
#include "kernels/number_grid.h"

namespace planish {

enum class Role { Activation, Weight, Either };

/// A validated quantizer. `grid.format == None` quantizes nothing.
struct QuantSpec {
    NumberGrid grid;
    bool isNone() const { return grid.format == NumberFormat::None; }
    bool operator==(const QuantSpec &) const = default;
};

/// Parses a spec for a role. Contradictions and unknown words are Usage errors with the valid list and nearest name.
Expected<QuantSpec> parseQuantSpec(std::string_view text, Role role);

/// Format, sharing, then only options that are not defaults, in the order of cli.md.
std::string canonicalText(const QuantSpec &spec, Role role);

/// Bits per element including scales and zero points of one tensor [rows, cols] (evaluation.md "Ledger", weight_bits).
double storedBits(const QuantSpec &spec, std::size_t rows, std::size_t cols);

/// Whether the spec can share steps over `channels`: a group of at most K, and K a multiple of it under tail=reject.
Expected<void> checkSharing(const QuantSpec &spec, Role role, std::size_t channels, const std::string &subject);

} // namespace planish
