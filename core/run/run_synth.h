// The verb `synth`: a dump with planted outliers, or a complete tiny model with the dump of its own forward pass.
#pragma once

#include "core/io/progress.h"
#include "core/run/requests.h"
#include "core/synth/synth_model.h"

namespace planish {

/// The files written, in order. Nothing is left behind on failure or cancel.
Expected<std::vector<std::string>> runSynth(const SynthRequest &request, std::stop_token stop, const ProgressSink &progress);

/// The model's tensors as a safetensors file (f32).
Expected<void> writeSynthCheckpoint(const SynthModel &model, const std::string &file);

} // namespace planish
