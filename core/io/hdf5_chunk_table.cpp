#define H5_USE_110_API
#include "core/io/hdf5_chunk_table.h"

#include <hdf5.h>

#include <algorithm>

#include "core/io/chunk_copy.h"

namespace planish {

namespace {

constexpr std::uint64_t kWholeGrid = 1024; ///< chunks up to which the library is asked for each of them
constexpr std::uint64_t kMostOfBox = 65536;

struct FileFacts {
    std::uint64_t base = 0;   ///< bytes before the signature
    bool wideNumbers = false; ///< addresses and lengths have 8 bytes
};

FileFacts factsOf(std::int64_t file)
{
    FileFacts facts;
    const Hdf5Handle creation(H5Fget_create_plist(file), H5Pclose);
    hsize_t userBlock = 0;
    std::size_t addressBytes = 0;
    std::size_t lengthBytes = 0;
    if (creation && H5Pget_userblock(creation.get(), &userBlock) >= 0)
        facts.base = userBlock;
    if (creation && H5Pget_sizes(creation.get(), &addressBytes, &lengthBytes) >= 0)
        facts.wideNumbers = addressBytes == 8 && lengthBytes == 8;
    return facts;
}

std::uint64_t gridSize(const ChunkedDataset &data)
{
    std::uint64_t count = 1;
    for (std::size_t axis = 0; axis < data.shape.size(); ++axis) {
        const std::uint64_t along = data.shape[axis] / data.chunk[axis] + (data.shape[axis] % data.chunk[axis] != 0 ? 1 : 0);
        if (__builtin_mul_overflow(count, along, &count))
            return UINT64_MAX;
    }
    return count;
}

std::vector<std::uint64_t> originOf(const ChunkedDataset &data, std::uint64_t number)
{
    std::vector<std::uint64_t> origin(data.shape.size());
    for (std::size_t axis = data.shape.size(); axis-- > 0;) {
        const std::uint64_t along = (data.shape[axis] + data.chunk[axis] - 1) / data.chunk[axis];
        origin[axis] = number % along * data.chunk[axis];
        number /= along;
    }
    return origin;
}

std::optional<ChunkEntry> entryByLibrary(const ChunkedDataset &data, const std::vector<std::uint64_t> &origin, bool &failed)
{
    const std::vector<hsize_t> offset(origin.begin(), origin.end());
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t size = 0;
    if (H5Dget_chunk_info_by_coord(data.dataset, offset.data(), &mask, &address, &size) < 0 || size > UINT32_MAX) {
        failed = true;
        return std::nullopt;
    }
    if (address == HADDR_UNDEF || size == 0)
        return std::nullopt;
    const std::optional<std::uint64_t> number = chunkNumber(data.shape, data.chunk, origin);
    failed = failed || !number;
    return ChunkEntry{number.value_or(0), address, static_cast<std::uint32_t>(size), mask};
}

/// Asks the library for the chunks of a box, one by one.
std::optional<std::vector<ChunkEntry>> entriesByLibrary(const ChunkedDataset &data, const Box &box)
{
    std::vector<ChunkEntry> entries;
    bool failed = false;
    std::uint64_t asked = 0;
    ChunkOrigins origins(box, data.chunk);
    while (const std::optional<std::vector<std::uint64_t>> origin = origins.next()) {
        if (++asked > kMostOfBox)
            return std::nullopt;
        if (const std::optional<ChunkEntry> entry = entryByLibrary(data, *origin, failed))
            entries.push_back(*entry);
        if (failed)
            return std::nullopt;
    }
    return entries;
}

bool sizesAgree(const ChunkedDataset &data, const std::vector<ChunkEntry> &entries)
{
    return std::all_of(entries.begin(), entries.end(), [&](const ChunkEntry &entry) {
        const std::vector<std::uint64_t> origin = originOf(data, entry.number);
        const std::vector<hsize_t> offset(origin.begin(), origin.end());
        hsize_t size = 0;
        return H5Dget_chunk_storage_size(data.dataset, offset.data(), &size) >= 0 && size == entry.bytes;
    });
}

/// Those of `shifts` that, added to the address, lead to the stored bytes the library gives.
std::vector<std::uint64_t> fittingShifts(const RawFile &raw, const std::vector<std::uint64_t> &shifts, const ChunkedDataset &data,
                                         const ChunkEntry &entry)
{
    std::uint64_t whole = data.elementBytes;
    for (const std::uint64_t side : data.chunk)
        whole *= side;
    if (entry.bytes > 2 * whole + 65536 || entry.bytes > raw.size())
        return {};
    const std::vector<std::uint64_t> origin = originOf(data, entry.number);
    const std::vector<hsize_t> offset(origin.begin(), origin.end());
    std::vector<std::byte> byLibrary(entry.bytes);
    std::uint32_t mask = 0;
    if (H5Dread_chunk(data.dataset, H5P_DEFAULT, offset.data(), &mask, byLibrary.data()) < 0 || mask != entry.skippedFilters)
        return {};
    std::vector<std::byte> byAddress(entry.bytes);
    std::vector<std::uint64_t> fitting;
    for (const std::uint64_t shift : shifts) {
        std::uint64_t at = 0;
        if (!__builtin_add_overflow(entry.offset, shift, &at) && raw.read(at, byAddress) && byLibrary == byAddress)
            fitting.push_back(shift);
    }
    return fitting;
}

/// What has to be added to the addresses: the tree counts from the base of the file, and so do some versions of the library. With two
/// answers left the next chunk decides; when all chunks fit both, either is right.
std::optional<std::uint64_t> shiftOf(const RawFile &raw, std::vector<std::uint64_t> shifts, const ChunkedDataset &data,
                                     const std::vector<ChunkEntry> &entries)
{
    for (const ChunkEntry &entry : entries) {
        shifts = fittingShifts(raw, shifts, data, entry);
        if (shifts.size() < 2)
            break;
    }
    return shifts.empty() ? std::nullopt : std::optional(shifts.front());
}

} // namespace

std::optional<std::uint64_t> chunkNumber(const std::vector<std::uint64_t> &shape, const std::vector<std::uint64_t> &chunk,
                                         const std::vector<std::uint64_t> &origin)
{
    std::uint64_t number = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (origin[axis] >= shape[axis] || origin[axis] % chunk[axis] != 0)
            return std::nullopt;
        const std::uint64_t along = shape[axis] / chunk[axis] + (shape[axis] % chunk[axis] != 0 ? 1 : 0);
        if (__builtin_mul_overflow(number, along, &number) || __builtin_add_overflow(number, origin[axis] / chunk[axis], &number))
            return std::nullopt;
    }
    return number;
}

StorageMap chunkTable(const Hdf5File &file, const RawFile &raw, const ChunkedDataset &data, const BoxMessage &box)
{
    StorageMap map;
    const FileFacts facts = factsOf(file.id());
    const std::uint64_t grid = gridSize(data);
    std::optional<std::vector<ChunkEntry>> entries;
    H5O_info_t object;
    if (grid > kWholeGrid && facts.wideNumbers && H5Oget_info(data.dataset, &object) >= 0)
        entries = readChunkTree(raw, facts.base, object.addr, data);
    if (entries && !sizesAgree(data, *entries))
        entries.reset();
    const std::vector<std::uint64_t> shifts =
        entries || facts.base == 0 ? std::vector{facts.base} : std::vector{std::uint64_t{0}, facts.base};
    if (!entries) {
        map.complete = grid <= kWholeGrid || box.count.empty();
        const Box whole{std::vector<std::uint64_t>(data.shape.size(), 0), data.shape};
        entries = entriesByLibrary(data, map.complete ? whole : Box{box.start, box.count});
    }
    if (!entries)
        return {};
    const std::optional<std::uint64_t> shift = shiftOf(raw, shifts, data, *entries);
    if (!shift)
        return {};
    for (ChunkEntry &entry : *entries)
        if (__builtin_add_overflow(entry.offset, *shift, &entry.offset))
            return {};
    map.kind = StorageKind::Chunked;
    map.chunks = std::move(*entries);
    return map;
}

} // namespace planish
