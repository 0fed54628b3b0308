// A checkpoint kept in HDF5: a native dump with weights, or any file of matrices named by their paths.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/io/checkpoint.h"

namespace planish {

/// `configFile` may be empty. Names: of a native dump the dump names (a bias as NAME.bias); else the path with dots for slashes.
Expected<std::shared_ptr<const Checkpoint>> openHdf5Checkpoint(const std::string &path, const std::string &configFile);

/// Little-endian bytes of a tensor as [shape[0], rest]; vectors and scalars give one row.
Expected<MatrixD> matrixFromBytes(const StoredTensor &tensor, std::span<const std::byte> bytes);

} // namespace planish
