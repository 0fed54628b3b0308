// Static ranges: the clip rule of a `static` spec applied once to calibration rows of X'. The rule itself lives in
// kernels/share_grid.
#pragma once

#include <string>

#include "core/io/error.h"
#include "core/quant/quant_spec.h"
#include "kernels/matrix_view.h"

namespace planish {

/// Ranges of X' [rows, K] on calibration rows, final (clip included): one for `tensor`, K for `channel`; for nvfp4 one, whose
/// `hi` is the tensor maximum. Empty for specs that are not static. Non-finite values and no rows are refused.
Expected<FixedRanges> staticRanges(const QuantSpec &spec, ConstViewD xCalibration);

/// nvfp4 static: the A of `QuantizeRequest::tensorScaleMax` out of `staticRanges`; -1 (from the rows at hand) for every other
/// spec.
double staticTensorMax(const QuantSpec &spec, const FixedRanges &ranges);

} // namespace planish
