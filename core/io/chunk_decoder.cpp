#include "core/io/chunk_decoder.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstring>

#include "core/io/chunk_filters.h"
#include "core/io/filter_table.h"

namespace planish {

namespace {

bool isCompressor(int id)
{
    return id != kFilterShuffle && id != kFilterFletcher32;
}

bool isSkipped(std::size_t filter, std::uint32_t skipped)
{
    return filter < 32 && (skipped >> filter & 1U) != 0;
}

/// Bytes a stage must give: the chunk plus four for every checksum still to be taken off; a bound when another compressor follows.
struct StageSize {
    std::size_t bytes = 0;
    bool exact = true;
    bool last = true;
};

StageSize sizeAfter(std::span<const FilterInfo> before, std::uint32_t skipped, std::size_t bytes)
{
    StageSize size{bytes};
    for (std::size_t i = 0; i < before.size(); ++i) {
        if (isSkipped(i, skipped))
            continue;
        size.last = false;
        if (before[i].id == kFilterFletcher32)
            size.bytes += 4;
        else if (isCompressor(before[i].id)) {
            // A compressor may have grown its input a little.
            size.bytes += size.bytes / 100 + 1024;
            size.exact = false;
        }
    }
    return size;
}

std::span<std::byte> grown(std::vector<std::byte> &buffer, std::size_t bytes)
{
    if (buffer.size() < bytes)
        buffer.resize(bytes);
    return std::span(buffer).first(bytes);
}

Expected<std::size_t> undoOne(const FilterInfo &filter, libdeflate_decompressor &deflate, Bytes from, Room to)
{
    switch (filter.id) {
    case kFilterDeflate:
        return undoDeflate(deflate, from, to);
    case kFilterLzf:
        return undoLzf(from, to);
    case kFilterLz4:
        return undoLz4(from, to);
    case kFilterZstd:
        return undoZstd(from, to);
    case kFilterBlosc:
        return undoBlosc(from, to);
    case kFilterBitshuffle:
        return undoBitshuffle(from, filter.values, to);
    case kFilterShuffle:
        if (from.size() > to.size())
            return tooLong("shuffled", to.size());
        undoShuffle(from, std::max(1U, filter.values.empty() ? 1U : filter.values[0]), to.first(from.size()));
        return from.size();
    default:
        return chunkError("filter " + std::to_string(filter.id) + " is not known", "a known filter");
    }
}

} // namespace

ChunkDecoder::ChunkDecoder() : m_deflate(libdeflate_alloc_decompressor()) {}

ChunkDecoder::~ChunkDecoder()
{
    libdeflate_free_decompressor(m_deflate);
}

std::span<std::byte> ChunkDecoder::stored(std::size_t bytes)
{
    return grown(m_stored, bytes);
}

std::span<std::byte> ChunkDecoder::room(std::size_t bytes)
{
    return grown(m_room, bytes);
}

Expected<void> ChunkDecoder::decode(std::span<const std::byte> stored, std::span<const FilterInfo> filters, std::uint32_t skipped,
                                    std::span<std::byte> out)
{
    if (m_deflate == nullptr)
        return machineError("", "no memory for the gzip decompressor", "a few kilobytes");
    Bytes now = stored;
    std::size_t next = 0; // which scratch buffer is free
    for (std::size_t i = filters.size(); i-- > 0;) {
        if (isSkipped(i, skipped))
            continue;
        const FilterInfo &filter = filters[i];
        if (filter.id == kFilterFletcher32) {
            const Expected<Bytes> data = undoFletcher32(now);
            if (!data)
                return tl::make_unexpected(data.error());
            now = *data;
            continue;
        }
        const StageSize size = sizeAfter(filters.first(i), skipped, out.size());
        const Room to = size.last ? out : grown(m_scratch[next], size.bytes);
        const Expected<std::size_t> got = undoOne(filter, *m_deflate, now, to);
        if (!got)
            return tl::make_unexpected(got.error());
        if (size.exact && *got != size.bytes)
            return chunkError("the " + filterName(filter.id) + " chunk holds only " + std::to_string(*got) + " of " +
                                  std::to_string(size.bytes) + " bytes",
                              "the whole chunk");
        now = Bytes(to).first(*got);
        next = 1 - next;
    }
    if (now.size() != out.size())
        return chunkError("the chunk holds " + std::to_string(now.size()) + " of " + std::to_string(out.size()) + " bytes",
                          "exactly the declared chunk");
    if (now.data() != out.data())
        std::memcpy(out.data(), now.data(), out.size());
    return {};
}

} // namespace planish
