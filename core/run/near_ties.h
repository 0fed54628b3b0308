// How many elements sit so close to a rounding tie that two honest implementations may round them apart.
#pragma once

#include <cstdint>

#include "kernels/backend.h"

namespace planish {

/// Elements within 1e-6 relative of a rounding tie of their share, plus every element of a share whose zero point is at one.
std::int64_t countNearTies(ConstViewD x, const NumberGrid &grid, const Quantized &quantized);

} // namespace planish
