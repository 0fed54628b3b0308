// Operator steps on one row by the definition, in double: scale, permute, Hadamard, block-diagonal matrices.
#pragma once

#include "kernels/operators.h"

namespace planish::reference {

/// One row of K channels in place; `side` picks divisor or multiplier, P or P^-T.
void applyStep(std::span<double> row, const OperatorStep &step, Side side);

} // namespace planish::reference
