// `info` of a file that holds weights only.
#pragma once

#include <nlohmann/json.hpp>

#include "core/io/checkpoint.h"

namespace planish {

nlohmann::ordered_json infoJson(const Checkpoint &checkpoint);
/// Whether the path names weights rather than a dump (a folder, .safetensors, .pt, .bin, .pkl, .pth), by its name alone.
bool looksLikeCheckpoint(const std::string &path);

} // namespace planish
