// The step and the zero point of one share: range, clip rule, dialect, stored width, block scale rules. One source of truth
// for every backend, so that codes agree bit for bit. Coding elements with a step: share_codes. Formulas: diagonal.md 2,
// formats.md.
#pragma once

#include <span>

#include "kernels/float_codes.h"
#include "kernels/number_grid.h"

namespace planish {

/// What one share is coded with. `step` is the factor of a code: xhat = step * (code - zero), or step * float value.
struct ShareStep {
    double step = 1.0; ///< negative in dialect signed when the extreme is positive
    double zero = 0.0;
    double scale = 1.0;      ///< effective scale that is reported: step, but 2^E for mxint8 (step 2^E/64)
    double multiplier = 0.0; ///< bitsandbytes: codes are rne(x * multiplier); 0 = divide
    bool degenerate = false; ///< zero range: step 1, zero code
    bool underflow = false;  ///< nvfp4: the block scale had to be raised to 2^-9
    bool representable = true;
    bool zeroAtTie = false; ///< -lo/step lies within 1e-6 of k + 1/2: every code of the share hangs on the last bit
};

/// What elements are rounded to, derived once from a grid.
struct CodeGrid {
    const FloatFormat *format = nullptr; ///< null: integers
    double lowest = 0.0, highest = 0.0;  ///< integer code limits
    bool roundsSum = false;              ///< compressed_tensors asym: rne(x/d + z)
    bool castsInput = false;             ///< bitsandbytes: x is rounded to f16 first
};
CodeGrid codeGridOf(const NumberGrid &grid);

/// Lower and upper end of the values, {0, 0} when empty.
Range rangeOf(std::span<const double> values);

/// Linear quantile (h = (n-1) p) as NumPy computes it; reorders `values`.
double linearQuantile(std::vector<double> &values, double p);

/// Range of the share after the clip rule, from its values (those that count for the step) and their range.
Range clippedRange(const NumberGrid &grid, std::span<const double> values, Range range);

/// Step, stored step and zero point from a range that is final. Not for block formats.
ShareStep stepOfRange(const NumberGrid &grid, Range range);

/// Step of a block of an mx format with that maximum.
ShareStep stepOfMxBlock(const NumberGrid &grid, double maxAbs);

/// nvfp4: tensor scale g of the tensor maximum A, rounded to float32; 1 for A = 0.
double nvfp4TensorScale(const NumberGrid &grid, double tensorMax);
/// nvfp4: step of a block; `divisor` 6 maps the maximum to 6, 4 to 4 (four over six).
ShareStep stepOfNvBlock(double maxAbs, double tensorScale, double divisor);
/// nvfp4: the step of a block; four_over_six tries both divisors and keeps the smaller squared error (6 wins ties).
ShareStep chooseNvBlock(const NumberGrid &grid, std::span<const double> values, double maxAbs, double tensorScale);

/// Sum of (xhat - x)^2 over a share coded with a step.
double squaredErrorOf(const CodeGrid &codes, const ShareStep &step, std::span<const double> values);

} // namespace planish
