// Both sides of one edge through their quantizers with some elements kept as stored, and the product error they make together.
// No transform: interventions and sensitivity look at the edge as it is.
#pragma once

#include "core/evaluate/part_rows.h"

namespace planish {

/// Elements that stay as stored and leave the step computation. An empty mask keeps nothing.
struct KeptElements {
    ExceptionMask activation, ranges;   ///< of the measured rows, of the calibration rows
    std::vector<ExceptionMask> weights; ///< per consumer, or empty
};

/// What goes into the quantizers instead of X, the calibration rows and W; null: as stored. Errors are always against X and W.
struct QuantizerInputs {
    std::shared_ptr<const MatrixD> x, ranges;
    std::vector<std::shared_ptr<const MatrixD>> weights; ///< per consumer, or empty
};

/// Xq and the exact element errors of both sides; a null error is an exact side.
struct QuantizedSides {
    ResidentPtr activation, activationError;
    std::vector<ResidentPtr> weightErrors; ///< per consumer
};

Expected<QuantizedSides> quantizeSides(const PartRows &rows, const SpecPair &specs, const QuantizerInputs &inputs,
                                       const KeptElements &kept, std::stop_token stop);

/// Keeps (or drops) the errors of the flagged elements; the others become exact (or stay). One mask a consumer.
enum class FlaggedErrors { Keep, Drop };
Expected<QuantizedSides> withErrors(const PartRows &rows, const QuantizedSides &sides, FlaggedErrors flagged,
                                    const ExceptionMask &activation, const std::vector<ExceptionMask> &weights);

/// The same with X (or every W) exact.
QuantizedSides withExactActivation(const PartRows &rows, QuantizedSides sides);

/// Sums of E = E_X W^T + X_q E_W^T over all consumers.
Expected<ResidualSums> productError(const PartRows &rows, const QuantizedSides &sides, TermDetail detail, std::stop_token stop);

} // namespace planish
