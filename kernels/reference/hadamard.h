// Hadamard rotation of rows by the definition: Z[m, L] -> A Z S / sqrt(block), rotation.md 2.2 and 2.9.
#pragma once

#include "kernels/matrix_view.h"
#include "kernels/operators.h"

namespace planish::reference {

/// One row of K channels in place, K a multiple of step.block.
void applyHadamard(std::span<double> row, const HadamardStep &step);

} // namespace planish::reference
