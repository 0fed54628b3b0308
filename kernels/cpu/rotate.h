// Operator steps on a tile of rows in double; each step runs over the tile while it is in cache.
#pragma once

#include "kernels/operators.h"

namespace planish::cpu {

/// All steps on rows [rows, K] in place. Rows are independent: any tiling gives the same bits for everything but block matrices,
/// whose tile is fixed by rowsPerTile().
void applySteps(MatrixView<double> tile, std::span<const OperatorStep> steps, Side side);

/// Rows of a tile for these steps: wide for block matrices (a product), narrow otherwise (cache).
std::size_t rowsPerTile(std::span<const OperatorStep> steps);

} // namespace planish::cpu
