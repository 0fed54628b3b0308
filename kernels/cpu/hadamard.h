// Fast Walsh-Hadamard transforms: rows in double for the backend, rows in float for online use and benchmarks.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/cpu/workers.h"
#include "kernels/operators.h"

namespace planish::cpu {

/// One row of K channels in place, K a multiple of step.block; rotation.md 2.2. `scratch` grows as needed.
void applyHadamard(std::span<double> row, const HadamardStep &step, std::vector<double> &scratch);

/// Sylvester Hadamard times 1/sqrt(cols) of every row, in place or from `in` to `out` [rows, cols]; cols is a power of two.
void hadamardRows(const float *in, float *out, std::size_t rows, std::size_t cols, const Workers &workers);

} // namespace planish::cpu
