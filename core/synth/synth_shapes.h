// The families `synth --model-out` can make: one SynthShape each.
#pragma once

#include <span>

#include "core/synth/synth_model.h"

namespace planish {

std::span<const SynthShape> synthShapes();

} // namespace planish
