// A B^T in double for the reference backend.
#pragma once

#include "kernels/matrix_view.h"

namespace planish::reference {

/// [M,K] x [N,K] -> [M,N].
MatrixD multiplyTransposed(ConstViewD a, ConstViewD b);

} // namespace planish::reference
