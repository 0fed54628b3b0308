// Inside core/io only: which chunks a range of rows touches, and copying one decoded chunk into its place among those rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace planish {

/// One chunk of a dataset, seen from rows [begin, end) that are read as a contiguous block.
struct ChunkPlace {
    const std::vector<std::uint64_t> &origin, &chunk, &shape;
    std::size_t elementBytes;
    std::uint64_t begin, end;
};

/// True when the chunk reaches beyond the dataset: a partial border chunk.
bool reachesBeyond(const std::vector<std::uint64_t> &origin, const std::vector<std::uint64_t> &chunk,
                   const std::vector<std::uint64_t> &shape);

/// Copies the part of a decoded chunk that lies in the rows; chunks of one dataset write disjoint bytes of `out`.
void copyChunk(const ChunkPlace &place, std::span<const std::byte> values, std::span<std::byte> out);
/// The same with one element repeated.
void fillChunk(const ChunkPlace &place, std::span<const std::byte> element, std::span<std::byte> out);

/// Origins of the chunks that touch rows [begin, end), in row-major order.
class ChunkOrigins {
public:
    ChunkOrigins(const std::vector<std::uint64_t> &shape, const std::vector<std::uint64_t> &chunk, std::uint64_t begin,
                 std::uint64_t end);
    std::optional<std::vector<std::uint64_t>> next();

private:
    std::vector<std::uint64_t> m_shape, m_chunk, m_origin;
    std::uint64_t m_end = 0;
    bool m_done = false;
};

} // namespace planish
