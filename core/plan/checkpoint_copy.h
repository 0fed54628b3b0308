// Writes a folded checkpoint in the kind and sharding of its input: one file, or a folder with shards and index. Everything is
// temporary until all of it is written; the index is renamed last.
#pragma once

#include <map>
#include <stop_token>
#include <string>

#include "core/io/progress.h"
#include "core/plan/folded_checkpoint.h"

namespace planish {

struct CopyRequest {
    const CheckpointInfo *input = nullptr;
    const FoldedCheckpoint *folded = nullptr;
    std::string out;
    std::map<std::string, std::string> metadata; ///< planish.* entries, added to the input's
};

/// Errors: output in the way, disk too small (machine), overflow, cancel. Nothing is left behind on an error.
Expected<void> copyCheckpoint(const CopyRequest &request, std::stop_token stop, const ProgressSink &progress);

/// Whether `out` may be written: not the input, no other file or filled folder in its place, enough room on the disk.
Expected<void> checkOutput(const CopyRequest &request);

} // namespace planish
