// Which safetensors files make one checkpoint: a single file, a folder with its index, or a folder whose files repeat no name.
#pragma once

#include <string>

#include "core/io/checkpoint.h"
#include "core/io/error.h"

namespace planish {

/// Lists the tensors of a folder (or of the index given itself). Errors name the tensor and the shard: missing shard, tensor not
/// in its shard or in two, an index that points outside the folder, pickled checkpoints.
Expected<CheckpointInfo> listShardedCheckpoint(const std::string &path);
/// The same for one file.
Expected<CheckpointInfo> listSingleCheckpoint(const std::string &path);

} // namespace planish
