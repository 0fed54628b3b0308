// Blocks of the stored bytes of an HDF5 file, read by this program: positioned reads in a pool of threads, chunks decoded by our own
// filters so that a short or damaged chunk is an error. What only the library can read, its process reads.
#pragma once

#include <memory>

#include "core/io/block_source.h"
#include "core/io/raw_file.h"

namespace planish {

class Hdf5Remote;

std::unique_ptr<BlockSource> makeStoredBlocks(std::shared_ptr<Hdf5Remote> remote, RawFile raw);

} // namespace planish
