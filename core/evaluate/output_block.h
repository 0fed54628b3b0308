// The `output` block of an evaluation from error sums: pooled figures, rows, worst places, per consumer. evaluation.md 6.
#pragma once

#include <string>
#include <vector>

#include "core/evaluate/evaluation.h"

namespace planish {

/// `consumers` name the outputs in stack order; token texts come from the dump.
OutputBlock outputBlock(const ErrorSums &sums, const std::vector<std::string> &consumers, const TokenTable &tokens,
                        const DumpEdge &edge);

/// The rows figures alone: over rows with y != 0 of ||e_m|| / ||y_m||.
RowFigures rowFigures(const ErrorSums &sums);

/// Terms over ||Y||^2 and what they leave of the whole.
ErrorTerms errorTerms(const ErrorSums &sums);

/// Relative error and fractions of one quantized tensor.
TensorError tensorErrorOf(const QuantizeCounts &counts);

} // namespace planish
