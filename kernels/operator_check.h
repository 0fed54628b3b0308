// Whether operator steps fit K channels, checked once for every backend before any number is touched.
#pragma once

#include <span>

#include "kernels/operators.h"
#include "kernels/status.h"

namespace planish {

/// Lengths, a permutation of 0..K-1, power-of-two Sylvester parts, square blocks with a valid assignment, the shift.
KernelResult<void> checkSteps(std::span<const OperatorStep> steps, std::size_t channels, std::span<const double> shift);

} // namespace planish
