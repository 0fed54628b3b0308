// The arithmetic of a fold, in double, on matrices alone: norm gains, producer rows, consumer columns and biases.
// Which tensors are folded, and in which order, is fold_map's business.
#pragma once

#include <string>
#include <vector>

#include "core/io/dump.h"
#include "core/plan/plan.h"

namespace planish {

/// Shift and the operators the producer absorbs.
Transform fusedPrefix(const Assignment &assignment);

/// gain' = (offset + gain) / s - offset, bias' = (bias - c) / s. Error: an operator a gain cannot hold.
Expected<void> foldNorm(NormParameters &norm, const Transform &prefix, const std::string &subject);

/// Row of the producer that channel k of the edge reads: k itself, or (k / head / rep) * head + k % head behind grouped attention.
Expected<std::vector<std::int64_t>> producerRowMap(std::size_t channels, std::size_t rows, const ModelInfo &model, const std::string &subject);

/// W' = P^T W and b' = P^T (b - c) on the rows of a producer [rows, inputs]; bias [1, rows] or null.
/// Error when channels that share a row want different factors (gqa_repeat).
Expected<void> foldProducerRows(MatrixD &weight, MatrixD *bias, const Transform &prefix, const std::vector<std::int64_t> &rowOf,
                                const std::string &subject);

/// Divisor of each row when the prefix is diagonal, else empty; for quantities that scale with a row.
std::vector<double> rowDivisors(const Transform &prefix, const std::vector<std::int64_t> &rowOf, std::size_t rows);

/// W' = W P^-T in double.
Expected<MatrixD> foldConsumerColumns(const MatrixD &weight, const Transform &input);

/// b' = b + W c with W in the coordinates before the fold of its own columns.
void foldConsumerBias(MatrixD &bias, const MatrixD &weight, const std::vector<double> &shift);

} // namespace planish
