// The table of number formats: key, label, bits, what may share a step and which options a spec may carry. cli.md "QuantSpec".
// Adding a format is one row here and its arithmetic in kernels.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/number_grid.h"

namespace planish {

/// One row of the `formats` verb. Sharings and options are the words of a spec; the first sharing is not the default.
struct FormatRow {
    NumberFormat format = NumberFormat::None;
    std::string key;       ///< "int4"
    std::string label;     ///< "4-bit integer"
    int bits = 0;          ///< of one code; 0 = not quantized
    std::size_t block = 0; ///< elements of one scale where the format fixes it, else 0
    int scaleBits = 0;     ///< bits stored per share (per block for block formats); 0 = nothing
    std::vector<std::string> activationSharings, weightSharings; ///< empty: the spec takes no sharing word
    std::string activationDefault, weightDefault;                ///< sharing of a bare format
    std::vector<std::string> options;                            ///< option words; "clip", "dialect", … stand for `clip=…`
};

/// All rows, in the order of NumberFormat.
const std::vector<FormatRow> &formatTable();

/// Row of a format; every enumerator has one.
const FormatRow &formatRow(NumberFormat format);

/// Row of a key, null when unknown.
const FormatRow *findFormat(std::string_view key);

} // namespace planish
