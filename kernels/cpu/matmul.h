// Double products on fixed tiles: A B^T for Y and equivalence, and small A B tiles for block matrices.
#pragma once

#include "kernels/buffer.h"
#include "kernels/cpu/workers.h"
#include "kernels/matrix_view.h"

namespace planish::cpu {

/// [M,K] x [N,K] -> [M,N]; tiles of 256 rows x 512 outputs over whole K, so the bits do not depend on threads.
Buffer<double> multiplyTransposed(ConstViewD a, ConstViewD b, const Workers &workers);

/// out[rows, cols of b] = a b, single-threaded, contiguous out.
void multiplyTile(ConstViewD a, ConstViewD b, double *out);

} // namespace planish::cpu
