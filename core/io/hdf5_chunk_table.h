// Inside core/io only, in the reader process: where the chunks of a dataset lie in the file.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/io/hdf5_file.h"
#include "core/io/raw_file.h"
#include "core/io/reader_protocol.h"

namespace planish {

struct ChunkedDataset {
    std::int64_t dataset = -1;
    std::vector<std::uint64_t> shape, chunk; ///< the same rank, at least one
    std::size_t elementBytes = 0;
};

/// The chunks of the whole dataset where that costs little, else of `box` only. ReaderOnly when an address is not what the library
/// reads. Under an Hdf5Lock.
StorageMap chunkTable(const Hdf5File &file, const RawFile &raw, const ChunkedDataset &data, const BoxMessage &box);

/// The same out of the B-tree of the older file format in one pass: the library answers only by walking the whole tree for each
/// chunk, 3 s for 20,000 chunks. Nothing when the dataset has another index or the tree is not in order. Addresses are relative to
/// the base of the file.
std::optional<std::vector<ChunkEntry>> readChunkTree(const RawFile &raw, std::uint64_t base, std::uint64_t objectHeader,
                                                     const ChunkedDataset &data);

/// Number of the chunk at `origin` in the row-major grid; nothing when it is no origin of a chunk inside the shape.
std::optional<std::uint64_t> chunkNumber(const std::vector<std::uint64_t> &shape, const std::vector<std::uint64_t> &chunk,
                                         const std::vector<std::uint64_t> &origin);

} // namespace planish
