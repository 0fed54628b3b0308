// Haar-distributed orthogonal matrices from one random stream. rotation.md 2.5.
#pragma once

#include <cstddef>

#include "core/transform/random_stream.h"
#include "kernels/matrix_view.h"

namespace planish {

/// Q of the Householder QR of `a` [K,K] with each column multiplied by the sign of diag R (0 counts as +).
MatrixD orthogonalFactor(const MatrixD &a);

/// Haar matrix [order, order]: the orthogonal factor of a Gaussian matrix filled row by row from `stream`.
MatrixD randomOrthogonal(RandomStream &stream, std::size_t order);

} // namespace planish
