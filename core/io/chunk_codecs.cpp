// Filters of the HDF5 plug-in collection, by the libraries they are made of: lz4, zstd, blosc, and bitshuffle around the first two.
// Framing: the sources of the plug-ins (H5Zlz4.c, H5Zzstd.c, blosc_filter.c, bshuf_h5filter.c).
#include <blosc.h>
#include <lz4.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "core/io/chunk_filters.h"

namespace planish {

namespace {

constexpr unsigned kBitshuffleLz4 = 2, kBitshuffleZstd = 3;
constexpr std::size_t kLargestInt = std::numeric_limits<int>::max();

/// Big-endian numbers of the two framings; a short rest marks the reader as bad.
class BigEndianReader {
public:
    explicit BigEndianReader(Bytes bytes) : m_rest(bytes) {}
    std::uint64_t number(std::size_t size)
    {
        std::uint64_t value = 0;
        for (const std::byte b : take(size))
            value = value << 8 | static_cast<std::uint64_t>(b);
        return value;
    }
    Bytes take(std::uint64_t size)
    {
        if (size > m_rest.size()) {
            m_bad = true;
            return {};
        }
        const Bytes taken = m_rest.first(static_cast<std::size_t>(size));
        m_rest = m_rest.subspan(static_cast<std::size_t>(size));
        return taken;
    }
    bool bad() const { return m_bad; }
    bool atEnd() const { return m_rest.empty(); }

private:
    Bytes m_rest;
    bool m_bad = false;
};

bool expandLz4(Bytes from, Room to)
{
    return from.size() <= kLargestInt && to.size() <= kLargestInt &&
           LZ4_decompress_safe(reinterpret_cast<const char *>(from.data()), reinterpret_cast<char *>(to.data()),
                               static_cast<int>(from.size()), static_cast<int>(to.size())) == static_cast<int>(to.size());
}

bool expandZstd(Bytes from, Room to)
{
    return ZSTD_decompress(to.data(), to.size(), from.data(), from.size()) == to.size();
}

/// 8 rows of 8 bits turned into columns.
std::uint64_t transposeBits(std::uint64_t x)
{
    std::uint64_t t = (x ^ (x >> 7)) & 0x00AA00AA00AA00AAULL;
    x ^= t ^ (t << 7);
    t = (x ^ (x >> 14)) & 0x0000CCCC0000CCCCULL;
    x ^= t ^ (t << 14);
    t = (x ^ (x >> 28)) & 0x00000000F0F0F0F0ULL;
    return x ^ t ^ (t << 28);
}

struct BitshuffleShape {
    std::size_t elementBytes = 1, blockElements = 0;
    unsigned compressor = 0;
};

/// The block size the plug-in takes when none is stated: about 8 KiB, a multiple of 8 elements, at least 128.
std::size_t usualBlock(std::size_t elementBytes)
{
    return std::max<std::size_t>(8192 / elementBytes / 8 * 8, 128);
}

Expected<std::size_t> bitshuffleBlocks(BigEndianReader &in, const BitshuffleShape &shape, Room to)
{
    const auto damaged = [] { return chunkError("the bitshuffle data of the chunk are damaged", "complete blocks of bit planes"); };
    const std::size_t elements = to.size() / shape.elementBytes;
    std::vector<std::byte> planes(std::min(shape.blockElements, elements) * shape.elementBytes);
    std::size_t done = 0;
    while (elements - done >= 8) {
        const std::size_t block = std::min(shape.blockElements, (elements - done) / 8 * 8);
        const std::size_t bytes = block * shape.elementBytes;
        const Bytes stored = in.take(shape.compressor == 0 ? bytes : in.number(4));
        const Room room(planes.data(), bytes);
        const bool good = !in.bad() && (shape.compressor == 0               ? (std::memcpy(room.data(), stored.data(), bytes), true)
                                        : shape.compressor == kBitshuffleLz4 ? expandLz4(stored, room)
                                                                             : expandZstd(stored, room));
        if (!good)
            return damaged();
        joinBitPlanes(planes.data(), block, shape.elementBytes, to.data() + done * shape.elementBytes);
        done += block;
    }
    // Fewer than eight elements stand as they are behind the blocks.
    const Room last = to.subspan(done * shape.elementBytes);
    const Bytes rest = in.take(last.size());
    if (in.bad() || !in.atEnd())
        return damaged();
    std::copy(rest.begin(), rest.end(), last.begin());
    return to.size();
}

} // namespace

Expected<std::size_t> undoLz4(Bytes from, Room to)
{
    const auto damaged = [] { return chunkError("the lz4 data of the chunk are damaged", "complete lz4 blocks"); };
    BigEndianReader in(from);
    const std::uint64_t whole = in.number(8);
    const std::uint64_t stated = in.number(4);
    if (in.bad() || (stated == 0 && whole > 0))
        return damaged();
    if (whole > to.size())
        return tooLong("lz4", to.size());
    std::size_t written = 0;
    while (written < whole) {
        const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(stated, whole - written));
        const Bytes block = in.take(in.number(4));
        const Room room = to.subspan(written, size);
        if (in.bad())
            return damaged();
        // A block that did not shrink is stored as it is.
        if (block.size() == size)
            std::copy(block.begin(), block.end(), room.begin());
        else if (!expandLz4(block, room))
            return damaged();
        written += size;
    }
    return written;
}

Expected<std::size_t> undoZstd(Bytes from, Room to)
{
    const std::size_t got = ZSTD_decompress(to.data(), to.size(), from.data(), from.size());
    if (ZSTD_isError(got) != 0)
        return ZSTD_getErrorCode(got) == ZSTD_error_dstSize_tooSmall
                   ? tooLong("zstd", to.size())
                   : chunkError("the zstd data of the chunk are damaged", "a complete zstd frame");
    return got;
}

Expected<std::size_t> undoBlosc(Bytes from, Room to)
{
    std::size_t whole = 0;
    if (from.size() < BLOSC_MIN_HEADER_LENGTH || blosc_cbuffer_validate(from.data(), from.size(), &whole) < 0)
        return chunkError("the blosc data of the chunk are damaged", "a complete blosc buffer");
    if (whole > to.size())
        return tooLong("blosc", to.size());
    constexpr int kThreads = 1;
    const int got = blosc_decompress_ctx(from.data(), to.data(), to.size(), kThreads);
    if (got < 0 || static_cast<std::size_t>(got) != whole)
        return chunkError("the blosc data of the chunk are damaged", "a complete blosc buffer");
    return whole;
}

void joinBitPlanes(const std::byte *planes, std::size_t n, std::size_t elementBytes, std::byte *out)
{
    const std::size_t rowBytes = n / 8;
    for (std::size_t b = 0; b < elementBytes; ++b) {
        const std::byte *const rows = planes + b * 8 * rowBytes;
        for (std::size_t group = 0; group < rowBytes; ++group) {
            std::uint64_t bits = 0;
            for (std::size_t i = 0; i < 8; ++i)
                bits |= static_cast<std::uint64_t>(rows[i * rowBytes + group]) << (8 * i);
            bits = transposeBits(bits);
            for (std::size_t j = 0; j < 8; ++j)
                out[(group * 8 + j) * elementBytes + b] = static_cast<std::byte>(bits >> (8 * j));
        }
    }
}

Expected<std::size_t> undoBitshuffle(Bytes from, std::span<const unsigned> values, Room to)
{
    BitshuffleShape shape;
    shape.elementBytes = values.size() > 2 && values[2] > 0 ? values[2] : 1;
    shape.compressor = values.size() > 4 ? values[4] : 0;
    shape.blockElements = values.size() > 3 && values[3] > 0 ? values[3] : usualBlock(shape.elementBytes);
    if (shape.compressor != 0 && shape.compressor != kBitshuffleLz4 && shape.compressor != kBitshuffleZstd)
        return chunkError("bitshuffle with the unknown compressor " + std::to_string(shape.compressor), "none, lz4 or zstd");
    BigEndianReader in(from);
    std::uint64_t whole = from.size();
    if (shape.compressor != 0) {
        whole = in.number(8);
        shape.blockElements = static_cast<std::size_t>(in.number(4)) / shape.elementBytes;
    }
    if (in.bad() || shape.blockElements == 0 || shape.blockElements % 8 != 0)
        return chunkError("the bitshuffle data of the chunk are damaged", "blocks of a multiple of 8 elements");
    if (whole > to.size())
        return tooLong("bitshuffle", to.size());
    // Bytes behind the last whole element stand as they are, too.
    const std::size_t elements = static_cast<std::size_t>(whole) / shape.elementBytes;
    return bitshuffleBlocks(in, shape, to.first(elements * shape.elementBytes));
}

} // namespace planish
