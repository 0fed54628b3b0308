// config.json of a Hugging Face checkpoint as ModelInfo.
#pragma once

#include <string>

#include "core/io/dump.h"
#include "core/io/error.h"

namespace planish {

/// `stated` lists which fields the file names. Quantized checkpoints (quantization_config) are refused by that name.
Expected<ModelInfo> readModelConfig(const std::string &path);

} // namespace planish
