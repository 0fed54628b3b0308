#include "core/io/hdf5_filters.h"

#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

namespace planish {

namespace {

struct FilterRow {
    int id;
    std::string_view name;
    std::string_view package;
    bool lossy;
};

constexpr std::array<FilterRow, 21> kFilters{{{1, "gzip", "", false},
                                              {2, "shuffle", "", false},
                                              {3, "fletcher32", "", false},
                                              {4, "szip", "", false},
                                              {5, "nbit", "", false},
                                              {6, "scaleoffset", "", false},
                                              {305, "lzo", "tables", false},
                                              {307, "bzip2", "hdf5plugin", false},
                                              {32000, "lzf", "h5py", false},
                                              {32001, "blosc", "hdf5plugin", false},
                                              {32004, "lz4", "hdf5plugin", false},
                                              {32008, "bitshuffle", "hdf5plugin", false},
                                              {32013, "zfp", "hdf5plugin", true},
                                              {32015, "zstd", "hdf5plugin", false},
                                              {32017, "sz", "hdf5plugin", true},
                                              {32018, "fcidecomp", "hdf5plugin", false},
                                              {32022, "bitgroom", "hdf5plugin", true},
                                              {32023, "bitround", "hdf5plugin", true},
                                              {32024, "sz3", "hdf5plugin", true},
                                              {32026, "blosc2", "hdf5plugin", false},
                                              {32028, "sperr", "hdf5plugin", true}}};

const FilterRow *findFilter(int id)
{
    const auto *const found = std::find_if(kFilters.begin(), kFilters.end(), [id](const FilterRow &row) { return row.id == id; });
    return found == kFilters.end() ? nullptr : found;
}

tl::unexpected<Error> chunkError(std::string what, std::string expected)
{
    return dataError("", std::move(what), std::move(expected));
}

/// Checksum of the HDF5 format: two 16-bit sums over big-endian words.
std::uint32_t fletcher32(std::span<const std::byte> bytes)
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

Expected<std::vector<std::byte>> undoFletcher(std::vector<std::byte> stored)
{
    if (stored.size() < 4)
        return chunkError("the chunk is too short for its fletcher32 checksum", "an intact chunk");
    const std::size_t size = stored.size() - 4;
    std::uint32_t written = 0;
    for (std::size_t i = 0; i < 4; ++i)
        written |= static_cast<std::uint32_t>(stored[size + i]) << (8 * i);
    stored.resize(size);
    const std::uint32_t computed = fletcher32(stored);
    // Files of HDF5 1.6.2 and before on little-endian machines swap the bytes of each half.
    const std::uint32_t swapped = (computed & 0x00FF00FF) << 8 | (computed & 0xFF00FF00) >> 8;
    if (written != computed && written != swapped)
        return chunkError("the fletcher32 checksum of the chunk is wrong", "the bytes that were written");
    return stored;
}

Expected<std::vector<std::byte>> undoDeflate(const std::vector<std::byte> &stored, std::size_t bytes, bool exact)
{
    const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> decompressor(
        libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
    if (!decompressor)
        return machineError("", "no memory for the gzip decompressor", "a few kilobytes");
    std::vector<std::byte> out(bytes);
    std::size_t got = 0;
    const libdeflate_result result =
        libdeflate_zlib_decompress(decompressor.get(), stored.data(), stored.size(), out.data(), out.size(), &got);
    const std::string declared = std::to_string(bytes) + " bytes";
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
        return chunkError("the gzip chunk expands to more than its declared " + declared, "at most the declared chunk");
    if (result != LIBDEFLATE_SUCCESS)
        return chunkError("the gzip data of the chunk are damaged", "a complete deflate stream");
    if (exact && got != bytes)
        return chunkError("the gzip chunk holds only " + std::to_string(got) + " of " + declared, "the whole chunk");
    out.resize(got);
    return out;
}

Expected<std::vector<std::byte>> undoLzf(const std::vector<std::byte> &stored, std::size_t bytes)
{
    std::vector<std::byte> out;
    out.reserve(bytes);
    const auto fail = [] { return chunkError("the lzf data of the chunk are damaged", "a complete lzf stream"); };
    for (std::size_t at = 0; at < stored.size();) {
        const auto control = static_cast<std::size_t>(stored[at++]);
        if (control < 32) {
            const std::size_t run = control + 1;
            if (run > stored.size() - at || run > bytes - out.size())
                return fail();
            out.insert(out.end(), stored.begin() + static_cast<std::ptrdiff_t>(at),
                       stored.begin() + static_cast<std::ptrdiff_t>(at + run));
            at += run;
            continue;
        }
        std::size_t length = control >> 5;
        if (length == 7) {
            if (at >= stored.size())
                return fail();
            length += static_cast<std::size_t>(stored[at++]);
        }
        length += 2;
        if (at >= stored.size())
            return fail();
        const std::size_t back = ((control & 31) << 8 | static_cast<std::size_t>(stored[at++])) + 1;
        if (back > out.size() || length > bytes - out.size())
            return fail();
        for (std::size_t i = 0; i < length; ++i)
            out.push_back(out[out.size() - back]);
    }
    return out;
}

std::vector<std::byte> undoShuffle(const std::vector<std::byte> &stored, std::size_t elementBytes)
{
    const std::size_t count = stored.size() / elementBytes;
    std::vector<std::byte> out(stored.size());
    if (elementBytes == 2) {
        for (std::size_t i = 0; i < count; ++i) {
            out[2 * i] = stored[i];
            out[2 * i + 1] = stored[count + i];
        }
    } else {
        for (std::size_t b = 0; b < elementBytes; ++b)
            for (std::size_t i = 0; i < count; ++i)
                out[i * elementBytes + b] = stored[b * count + i];
    }
    std::copy(stored.begin() + static_cast<std::ptrdiff_t>(count * elementBytes), stored.end(),
              out.begin() + static_cast<std::ptrdiff_t>(count * elementBytes));
    return out;
}

/// Bytes a stage must give: the chunk plus four for every checksum still to be taken off; a bound when another compressor
/// follows.
struct StageSize {
    std::size_t bytes = 0;
    bool exact = true;
};

StageSize sizeAfter(std::span<const ChunkFilter> before, std::uint32_t skipped, std::size_t bytes)
{
    StageSize size{bytes, true};
    for (std::size_t i = 0; i < before.size(); ++i) {
        if (i < 32 && (skipped >> i & 1U) != 0)
            continue;
        if (before[i].id == kFilterFletcher32)
            size.bytes += 4;
        if (before[i].id == kFilterDeflate || before[i].id == kFilterLzf) {
            // A compressor may have grown its input a little (deflate: five bytes a block).
            size.bytes += size.bytes / 100 + 1024;
            size.exact = false;
        }
    }
    return size;
}

} // namespace

std::string filterName(int id)
{
    const FilterRow *row = findFilter(id);
    return row != nullptr ? std::string(row->name) : "unregistered";
}

std::string filterPackage(int id)
{
    const FilterRow *row = findFilter(id);
    return row != nullptr ? std::string(row->package) : "";
}

bool isLossyFilter(int id, std::span<const unsigned> values, bool floats)
{
    // Scale-offset drops digits only of floats, in its modes D-scale (0) and E-scale (1).
    if (id == kFilterScaleOffset)
        return floats && !values.empty() && values[0] <= 1;
    const FilterRow *row = findFilter(id);
    return row != nullptr && row->lossy;
}

bool isOwnFilter(int id)
{
    return id == kFilterDeflate || id == kFilterShuffle || id == kFilterFletcher32 || id == kFilterLzf;
}

Expected<std::vector<std::byte>> undoFilters(std::vector<std::byte> stored, std::span<const ChunkFilter> filters,
                                             std::uint32_t skipped, std::size_t bytes)
{
    for (std::size_t i = filters.size(); i-- > 0;) {
        if (i < 32 && (skipped >> i & 1U) != 0)
            continue;
        const ChunkFilter &filter = filters[i];
        const StageSize size = sizeAfter(filters.first(i), skipped, bytes);
        Expected<std::vector<std::byte>> undone = std::vector<std::byte>();
        if (filter.id == kFilterDeflate)
            undone = undoDeflate(stored, size.bytes, size.exact);
        else if (filter.id == kFilterLzf)
            undone = undoLzf(stored, size.bytes);
        else if (filter.id == kFilterFletcher32)
            undone = undoFletcher(std::move(stored));
        else
            undone = undoShuffle(stored, std::max(1U, filter.values.empty() ? 1U : filter.values[0]));
        if (!undone)
            return undone;
        stored = std::move(*undone);
    }
    if (stored.size() != bytes)
        return chunkError("the chunk holds " + std::to_string(stored.size()) + " of " + std::to_string(bytes) + " bytes",
                          "exactly the declared chunk");
    return stored;
}

} // namespace planish
