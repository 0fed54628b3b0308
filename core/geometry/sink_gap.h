// How far the logit of a sink must stand above the others for it to take 1 - eps of the attention. diagonal.md 1.6.
#pragma once

#include <cstdint>

#include "core/io/error.h"

namespace planish {

/// ln((1-eps)(T-1)/eps) for T tokens whose other logits are equal. eps outside (0,1) or T < 2 is an error.
Expected<double> neededSinkGap(double eps, std::int64_t tokens);

} // namespace planish
