// Filters of HDF5 itself and of h5py: gzip by libdeflate, shuffle, fletcher32, lzf.
#include "core/io/chunk_filters.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace planish {

namespace {

/// Checksum of the HDF5 format: two 16-bit sums over big-endian words.
std::uint32_t fletcher32(Bytes bytes)
{
    std::uint32_t first = 0;
    std::uint32_t second = 0;
    std::size_t at = 0;
    for (std::size_t words = bytes.size() / 2; words > 0;) {
        const std::size_t run = std::min<std::size_t>(words, 360);
        words -= run;
        for (std::size_t i = 0; i < run; ++i, at += 2) {
            first += static_cast<std::uint32_t>(bytes[at]) << 8 | static_cast<std::uint32_t>(bytes[at + 1]);
            second += first;
        }
        first = (first & 0xFFFF) + (first >> 16);
        second = (second & 0xFFFF) + (second >> 16);
    }
    if (bytes.size() % 2 != 0) {
        first += static_cast<std::uint32_t>(bytes[at]) << 8;
        second += first;
    }
    for (int i = 0; i < 2; ++i) {
        first = (first & 0xFFFF) + (first >> 16);
        second = (second & 0xFFFF) + (second >> 16);
    }
    return second << 16 | first;
}

void interleavePairs(const std::byte *from, std::size_t count, std::byte *to)
{
    const std::byte *const high = from + count;
    for (std::size_t i = 0; i < count; ++i) {
        to[2 * i] = from[i];
        to[2 * i + 1] = high[i];
    }
}

void interleaveFours(const std::byte *from, std::size_t count, std::byte *to)
{
    for (std::size_t i = 0; i < count; ++i) {
        to[4 * i] = from[i];
        to[4 * i + 1] = from[count + i];
        to[4 * i + 2] = from[2 * count + i];
        to[4 * i + 3] = from[3 * count + i];
    }
}

/// One step of lzf: where the output continues, or 0 when the data are damaged. `at` moves past what was read.
std::size_t lzfStep(Bytes from, std::size_t &at, Room to, std::size_t written)
{
    const auto control = static_cast<std::size_t>(from[at++]);
    if (control < 32) {
        const std::size_t run = control + 1;
        if (run > from.size() - at || run > to.size() - written)
            return 0;
        std::memcpy(to.data() + written, from.data() + at, run);
        at += run;
        return written + run;
    }
    std::size_t length = control >> 5;
    if (length == 7) {
        if (at >= from.size())
            return 0;
        length += static_cast<std::size_t>(from[at++]);
    }
    length += 2;
    if (at >= from.size())
        return 0;
    const std::size_t back = ((control & 31) << 8 | static_cast<std::size_t>(from[at++])) + 1;
    if (back > written || length > to.size() - written)
        return 0;
    // The copy may read what it has just written.
    for (std::size_t i = 0; i < length; ++i)
        to[written + i] = to[written + i - back];
    return written + length;
}

} // namespace

tl::unexpected<Error> chunkError(std::string what, std::string expected)
{
    return dataError("", std::move(what), std::move(expected));
}

tl::unexpected<Error> tooLong(const char *filter, std::size_t declared)
{
    return chunkError("the " + std::string(filter) + " chunk expands to more than its declared " + std::to_string(declared) + " bytes",
                      "at most the declared chunk");
}

Expected<std::size_t> undoDeflate(libdeflate_decompressor &deflate, Bytes from, Room to)
{
    std::size_t got = 0;
    const libdeflate_result result =
        libdeflate_zlib_decompress(&deflate, from.data(), from.size(), to.data(), to.size(), &got);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
        return tooLong("gzip", to.size());
    if (result != LIBDEFLATE_SUCCESS)
        return chunkError("the gzip data of the chunk are damaged", "a complete deflate stream");
    return got;
}

Expected<std::size_t> undoLzf(Bytes from, Room to)
{
    std::size_t written = 0;
    for (std::size_t at = 0; at < from.size();) {
        written = lzfStep(from, at, to, written);
        if (written == 0)
            return chunkError("the lzf data of the chunk are damaged", "a complete lzf stream");
    }
    return written;
}

void undoShuffle(Bytes from, std::size_t elementBytes, Room to)
{
    const std::size_t count = from.size() / elementBytes;
    switch (elementBytes) {
    case 2:
        interleavePairs(from.data(), count, to.data());
        break;
    case 4:
        interleaveFours(from.data(), count, to.data());
        break;
    default:
        for (std::size_t b = 0; b < elementBytes && count > 0; ++b)
            for (std::size_t i = 0; i < count; ++i)
                to[i * elementBytes + b] = from[b * count + i];
    }
    const std::size_t whole = count * elementBytes;
    if (from.size() > whole)
        std::memcpy(to.data() + whole, from.data() + whole, from.size() - whole);
}

Expected<Bytes> undoFletcher32(Bytes from)
{
    if (from.size() < 4)
        return chunkError("the chunk is too short for its fletcher32 checksum", "an intact chunk");
    const Bytes data = from.first(from.size() - 4);
    std::uint32_t written = 0;
    for (std::size_t i = 0; i < 4; ++i)
        written |= static_cast<std::uint32_t>(from[data.size() + i]) << (8 * i);
    const std::uint32_t computed = fletcher32(data);
    // Files of HDF5 1.6.2 and before on little-endian machines swap the bytes of each half.
    const std::uint32_t swapped = (computed & 0x00FF00FF) << 8 | (computed & 0xFF00FF00) >> 8;
    if (written != computed && written != swapped)
        return chunkError("the fletcher32 checksum of the chunk is wrong", "the bytes that were written");
    return data;
}

} // namespace planish
