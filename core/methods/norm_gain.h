// `gain=absorb`: the norm's gain (and a LayerNorm's bias) go into the weights before a rotation, as a fused rotation ships
// (rotation.md 3.5).
#pragma once

#include "core/methods/method.h"

namespace planish {

/// Shift by the norm's bias, then Scale by its effective gain. Refused without a known norm and on a gain of 0, which needs rows
/// from before the norm.
Expected<Transform> absorbedGain(const FitInput &input);

} // namespace planish
