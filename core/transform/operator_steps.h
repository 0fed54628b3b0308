// Kernel steps of operators and their plain double arithmetic, row by row. The kernels do the same faster; this is the
// definition.
#pragma once

#include <span>
#include <vector>

#include "kernels/matrix_view.h"
#include "kernels/operators.h"

namespace planish {

/// Applies one step to every row of `matrix` [rows, K] in place.
void applyStep(MatrixD &matrix, const OperatorStep &step, Side side);

/// Steps of I_times (x) P from the steps of P on `channels` channels.
std::vector<OperatorStep> replicated(const std::vector<OperatorStep> &steps, std::size_t channels, std::size_t times);

} // namespace planish
