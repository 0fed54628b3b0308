// Operators on channels as plain data for the kernels, in the order they act on X. Meaning, inverse and naming: core/transform.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "kernels/matrix_view.h"

namespace planish {

/// x_k -> x_k / divisor_k (on X) or x_k * divisor_k (on W).
struct ScaleStep {
    std::vector<double> divisor;
};
/// x'_j = x_{perm[j]} on both sides.
struct PermuteStep {
    std::vector<std::int64_t> perm;
};
/// signs, then A^T (x) Sylvester over blocks of `block` channels, times 1/sqrt(block); the same on both sides.
/// rotation.md 2.2: Z[m, block/m] -> A Z S, flattened. `table` is m x m of +-1 (empty for m = 1).
struct HadamardStep {
    std::size_t block = 0;
    Matrix<std::int8_t> table;
    std::vector<std::int8_t> signs; ///< empty or K entries of +-1, applied before H
    bool inverse = false;           ///< H^T / sqrt(block), then the signs
};
/// Block-diagonal dense factor: X side uses `blocks`, W side `inverseTransposed`; assignment maps each K/B block to a matrix.
struct BlockDenseStep {
    std::vector<MatrixD> blocks;
    std::vector<MatrixD> inverseTransposed;
    std::vector<std::int32_t> assignment;
};
using OperatorStep = std::variant<ScaleStep, PermuteStep, HadamardStep, BlockDenseStep>;

enum class Side { Activation, Weight };

} // namespace planish
