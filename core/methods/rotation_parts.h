// Pieces the fixed rotations share: block sizes, block Hadamards with signs, permutations, closed-form smoothing factors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/methods/method.h"

namespace planish {

/// `block` parameter: 0 is the scale block of the activation spec if its format has one, else the largest power of two <= 128
/// that divides K. A block that does not divide K is refused with the possible ones.
Expected<std::size_t> blockOf(const FitInput &input, std::size_t whenAuto = 0);
/// 32 for MX formats, 16 for NVFP4, 0 for formats without a block of their own.
std::size_t scaleBlock(const QuantSpec &spec);

/// Block Hadamard of `block` channels with random signs of `seed` when `signs=random`.
Expected<Operator> signedBlockHadamard(const FitInput &input, std::size_t block, std::uint64_t seed);
/// The full-width Hadamard of the `table` parameter, no signs; errors carry the edge.
Expected<Operator> tableHadamard(const FitInput &input);
/// The table's full-width Hadamard (`table` parameter) with random signs of `seed` when `signs=random`.
Expected<Operator> signedFullHadamard(const FitInput &input, std::uint64_t seed);

/// Zigzag assignment of channels to blocks (rotation.md 4.3): `order` by size descending; X2[:,j] = X1[:,perm[j]].
std::vector<std::int64_t> zigzagPermutation(const std::vector<std::int64_t> &order, std::size_t block);

/// s_k = a_k^alpha / w_k^(1-alpha); 1 where a or w is 0. `dead` counts those channels.
std::vector<double> smoothingFactors(const std::vector<double> &activation, const std::vector<double> &weight, double alpha, std::int64_t &dead);

ParamRow blockParam(const std::string &help = "channels per block; 0: the scale block of the format, else the largest power of two <= 128 that divides K");
ParamRow signsParam();
ParamRow tableParam();

MatrixD transposedMatrix(const MatrixD &m);
/// The inner columns [begin, begin + count) of every row.
MatrixD columnsOf(ConstViewD matrix, std::size_t begin, std::size_t count);
/// All consumers' rows under one another, [sum N, K].
MatrixD stackedWeights(const std::vector<ConsumerWeights> &consumers);

} // namespace planish
