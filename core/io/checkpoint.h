// Weights from a checkpoint: one safetensors file, a sharded folder with its index and config.json, or HDF5. Names as stored.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/io/dump.h"
#include "core/io/error.h"

namespace planish {

struct StoredTensor {
    std::string name; ///< as in the checkpoint
    std::string file; ///< shard
    std::vector<std::uint64_t> shape;
    StoredType type = StoredType::F16;
    std::uint64_t offset = 0, bytes = 0; ///< of the data in `file`
};

struct CheckpointInfo {
    std::string path;                            ///< as given
    std::string kind;                            ///< file | folder | hdf5
    std::vector<std::string> files;              ///< shards in name order
    std::vector<StoredTensor> tensors;           ///< ascending byte order of names
    std::map<std::string, std::string> metadata; ///< __metadata__ of the first shard that has one
    std::optional<ModelInfo> config;             ///< config.json beside it
    std::string indexFile;                       ///< of a sharded folder
    const StoredTensor *find(std::string_view name) const;
};

/// Thread-safe reader of an opened checkpoint; inputs are never modified.
class Checkpoint {
public:
    virtual ~Checkpoint() = default;
    virtual const CheckpointInfo &info() const = 0;
    /// Raw bytes, little-endian, C order.
    virtual Expected<std::vector<std::byte>> readRaw(const StoredTensor &tensor) const = 0;
    /// Widened to double; 1-D tensors give [1, n].
    virtual Expected<MatrixD> readMatrix(const StoredTensor &tensor) const = 0;
};

Expected<std::shared_ptr<const Checkpoint>> openCheckpoint(const std::string &path, const std::string &configFile = {});

} // namespace planish
