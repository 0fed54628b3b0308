// Learned weight clipping: one matrix through its quantizer with a sigmoid factor on each end of every share, and the way back,
// straight through the rounding. diagonal.md 9.1.
#pragma once

#include <string>
#include <vector>

#include "core/methods/dense.h"
#include "core/quant/quant_spec.h"
#include "core/io/error.h"
#include "kernels/backend.h"

namespace planish {

/// Logits per share; sigmoid of them multiplies the upper and the lower end.
struct ClipLogits {
    std::vector<double> high, low;
};

double sigmoid(double x);

/// A matrix through the quantizer, and what the way back needs.
struct ClippedMatrix {
    Dense value;               ///< dequantized [N, K]
    std::vector<double> steps; ///< per share
    FixedRanges whole;         ///< extrema of the shares before the factors
};

/// `logits` null: the grid's own ranges. Errors: a step that cannot be represented.
Expected<ClippedMatrix> clippedMatrix(const Backend &backend, const Dense &w, const NumberGrid &grid, const ClipLogits *logits,
                                      const std::string &subject);

/// From toValue = dL/dvalue: adds dL/dlogits to `slopes` (when given) and returns dL/dw, the path through the extrema of every
/// share included. In range dvalue/dw = 1; where saturated 0. dvalue/dstep = code - w/step in range, the end code where saturated.
/// The zero point carries no gradient, as in the released code.
Dense backThroughClip(const Dense &w, const ClippedMatrix &clipped, const NumberGrid &grid, const ClipLogits *logits,
                      const Dense &toValue, ClipLogits *slopes);

} // namespace planish
