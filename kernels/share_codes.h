// Codes the elements of one run of a share with a chosen step: reconstruction, element errors, counts, integer codes, near ties.
#pragma once

#include <cstddef>

#include "kernels/backend.h"
#include "kernels/share_grid.h"

namespace planish {

/// One run of elements that share a step, as it lies in a row.
struct ShareRun {
    const double *values = nullptr; ///< [count] as given
    std::size_t count = 0;
    const std::uint8_t *exact = nullptr; ///< [count] flags of elements kept as they are, or null
    double bound = -1.0;                 ///< values clamped to +-bound first; < 0 = no bound
};

/// Where a run's results go; `codes` may be null.
template <class ErrorType> struct CodedRun {
    double *reconstructed = nullptr;
    ErrorType *errors = nullptr;
    std::int16_t *codes = nullptr;
};

/// Adds to `counts`: elements, zeroed, saturated, energies, squaredError (and nearTies when codes are wanted).
template <class ErrorType>
void codeRun(const NumberGrid &grid, const CodeGrid &codes, const ShareStep &step, const ShareRun &run,
             const CodedRun<ErrorType> &out, QuantizeCounts &counts);

/// a += b, field by field; call in share order.
void addCounts(QuantizeCounts &a, const QuantizeCounts &b);

/// The value a run is coded from: f16 cast of bitsandbytes, then the bound.
double codedInput(const CodeGrid &codes, double x, double bound);

} // namespace planish
