// The two sides of an edge product under a Rewrite: transformed matrices, and one consumer's weights through the quantizer.
#pragma once

#include "core/methods/edge_product.h"

namespace planish {

/// The matrix through the operators of one side; the same pointer when nothing changes.
Expected<ResidentPtr> transformed(const Backend &backend, const ResidentPtr &matrix, const Transform &transform, Side side,
                                  const std::string &subject);
Expected<std::shared_ptr<const MatrixD>> transformedMatrix(const Backend &backend, const std::shared_ptr<const MatrixD> &matrix,
                                                           const Transform &transform, const std::string &subject);

/// W' of every consumer: operators, output operator and low-rank branch taken off. This is the W' of E = E_X W'^T + X_q E_W^T;
/// replaced weights enter as an error against it.
Expected<std::vector<ResidentPtr>> transformedWeights(const ProductRows &rows, const Rewrite &rewrite);

/// Y U of one consumer for a Rewrite that rotates outputs.
Expected<ResidentPtr> rotatedReference(const ProductRows &rows, const Transform &output, std::size_t consumer);

/// A of the NVFP4 tensor scale: consumers that run as one product share it (formats.md 4.3). Negative for other formats.
Expected<double> sharedTensorMax(const ProductRows &rows, const QuantSpec &spec, const std::vector<ResidentPtr> &weights);

/// W' of one consumer through the weight spec with its clips and exact columns. A null error means exact.
Expected<Quantized> quantizeConsumer(const ProductRows &rows, const Rewrite &rewrite, const QuantSpec &spec, std::size_t consumer,
                                     const ResidentPtr &weight, const std::vector<std::uint8_t> &exactColumns, double tensorMax);

/// Applies a fitted clip: sets ranges, a clamp bound, or a fixed clip factor of the grid. `matrix` gives dynamic share ranges; it
/// may be null where ranges are already known or one factor holds for all shares.
Expected<void> applyClip(const Clip &clip, NumberGrid &grid, FixedRanges &ranges, std::vector<double> &clamp,
                         const MatrixD *matrix, const std::string &subject);

/// The given rows of a resident matrix.
Expected<ResidentPtr> rowsOf(const Backend &backend, const Resident &matrix, const std::vector<std::size_t> &rows,
                             const std::string &subject);

} // namespace planish
