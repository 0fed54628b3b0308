// Quantizes one matrix: who shares a step, what counts for it, steps, codes, errors and counts. Used by reference and cpu with
// their own loop; results do not depend on the loop's order.
#pragma once

#include <functional>

#include "kernels/backend.h"
#include "kernels/buffer.h"

namespace planish {

/// Runs body(i) for i in [0, count), in any order, possibly at once.
using IndexLoop = std::function<void(std::size_t count, const std::function<void(std::size_t)> &body)>;

template <class ErrorType> struct QuantizedArrays {
    Buffer<double> reconstructed;
    Buffer<ErrorType> error;
    std::vector<double> steps, zeros;
    Matrix<std::int16_t> codes;
    QuantizeCounts counts;
    double tensorScale = 0.0;
};

/// Shape mismatches (tail=reject, ranges, bounds, masks) and steps that are not finite are errors.
template <class ErrorType>
KernelResult<QuantizedArrays<ErrorType>> quantizeShares(ConstViewD matrix, const QuantizeRequest &request, const IndexLoop &loop);

} // namespace planish
