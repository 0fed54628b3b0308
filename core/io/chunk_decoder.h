// Stored chunks to numbers' bytes: the filter pipeline undone in reverse, every stage checked against the size it must have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/io/file_structure.h"

struct libdeflate_decompressor;

namespace planish {

/// Keeps its buffers from chunk to chunk. One per thread.
class ChunkDecoder {
public:
    ChunkDecoder();
    ~ChunkDecoder();
    ChunkDecoder(const ChunkDecoder &) = delete;
    ChunkDecoder &operator=(const ChunkDecoder &) = delete;

    /// Room for the stored bytes of one chunk; valid until the next call.
    std::span<std::byte> stored(std::size_t bytes);

    /// Undoes the pipeline (in reverse order, skipping filters whose bit is set in `skipped`) and fills `out`, the declared size of a
    /// chunk. Shorter and longer streams, damaged ones and wrong checksums are errors (subject left empty, the caller knows the
    /// chunk). `stored` may be the room above.
    Expected<void> decode(std::span<const std::byte> stored, std::span<const FilterInfo> filters, std::uint32_t skipped,
                          std::span<std::byte> out);

    /// Room for one decoded chunk; valid until the next call.
    std::span<std::byte> room(std::size_t bytes);

private:
    std::vector<std::byte> m_stored, m_room, m_scratch[2];
    libdeflate_decompressor *m_deflate = nullptr;
};

} // namespace planish
