// Inside core/io only: which chunks a box of a dataset touches, and copying one decoded chunk into its place in that box.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/io/error.h"

namespace planish {

/// A box of a dataset that is read as one contiguous block.
struct Box {
    std::vector<std::uint64_t> start, count; ///< one entry per axis
};

/// One chunk of a dataset, seen from the box that is read.
struct ChunkPlace {
    const std::vector<std::uint64_t> &origin, &chunk;
    std::size_t elementBytes;
    const Box &box;
};

/// Calls `run(byte offset in the dataset, byte offset in the block, bytes)` for every run of a box that lies together in a
/// contiguous dataset of this shape; stops at the first error.
Expected<void> forEachStoredRun(const Box &box, const std::vector<std::uint64_t> &shape, std::size_t elementBytes,
                                const std::function<Expected<void>(std::uint64_t, std::size_t, std::size_t)> &run);

/// True when the chunk reaches beyond the dataset: a partial border chunk.
bool reachesBeyond(const std::vector<std::uint64_t> &origin, const std::vector<std::uint64_t> &chunk,
                   const std::vector<std::uint64_t> &shape);

/// Copies the part of a decoded chunk that lies in the box; chunks of one dataset write disjoint bytes of `out`.
void copyChunk(const ChunkPlace &place, std::span<const std::byte> values, std::span<std::byte> out);
/// The same with one element repeated.
void fillChunk(const ChunkPlace &place, std::span<const std::byte> element, std::span<std::byte> out);

/// Offset in the block when the whole chunk lies there as one run, in its own order.
std::optional<std::size_t> directPlace(const ChunkPlace &place);

/// Origins of the chunks that touch a box, in row-major order.
class ChunkOrigins {
public:
    ChunkOrigins(const Box &box, const std::vector<std::uint64_t> &chunk);
    std::optional<std::vector<std::uint64_t>> next();

private:
    std::vector<std::uint64_t> m_first, m_end, m_chunk, m_origin;
    bool m_done = false;
};

} // namespace planish
