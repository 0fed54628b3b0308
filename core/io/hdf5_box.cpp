#define H5_USE_110_API
#include "core/io/hdf5_box.h"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/io/hdf5_chunk_table.h"
#include "core/io/hdf5_dataset.h"
#include "core/io/printable.h"

namespace planish {

namespace {

constexpr std::size_t kChunkCache = std::size_t{64} << 20;
constexpr std::uint64_t kLargestBox = std::uint64_t{512} << 20;

/// An external link may lead to a dataset of another file, whose addresses mean nothing here.
bool inThisFile(std::int64_t dataset, std::int64_t file)
{
    H5O_info_t own;
    H5O_info_t root;
    return H5Oget_info(dataset, &own) >= 0 && H5Oget_info(file, &root) >= 0 && own.fileno == root.fileno;
}

} // namespace

Hdf5Boxes::Hdf5Boxes(std::shared_ptr<const Hdf5File> file) : m_file(std::move(file)), m_raw(RawFile::open(m_file->path())) {}

std::string Hdf5Boxes::subject(const std::string &path) const
{
    return m_file->path() + ":" + printable(path);
}

Expected<const Hdf5Boxes::Held *> Hdf5Boxes::hold(const std::string &path)
{
    if (m_held.path == path && m_held.dataset)
        return &m_held;
    m_held = Held();
    Held held;
    const Hdf5Handle access = datasetAccess(m_file->trustedFolder(), kChunkCache);
    held.dataset = Hdf5Handle(H5Dopen2(m_file->id(), path.c_str(), access.get()), H5Dclose);
    if (!held.dataset)
        return dataError(subject(path), "cannot be opened (" + hdf5Reason() + ")", "a readable dataset");
    held.type = Hdf5Handle(H5Dget_type(held.dataset.get()), H5Tclose);
    held.creation = Hdf5Handle(H5Dget_create_plist(held.dataset.get()), H5Pclose);
    const Hdf5Handle space(H5Dget_space(held.dataset.get()), H5Sclose);
    std::array<hsize_t, H5S_MAX_RANK> dims{};
    const int rank = space ? H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr) : -1;
    if (!held.type || !held.creation || rank < 0)
        return dataError(subject(path), "has a shape or type that cannot be read (" + hdf5Reason() + ")", "a readable dataset");
    held.shape.assign(dims.begin(), dims.begin() + rank);
    held.scalar = rank == 0;
    if (held.scalar)
        held.shape = {1};
    held.elementBytes = H5Tget_size(held.type.get());
    held.path = path;
    m_held = std::move(held);
    return &m_held;
}

Expected<std::uint64_t> Hdf5Boxes::bytesOf(const Held &held, const BoxMessage &box) const
{
    std::vector<std::uint64_t> factors = box.count;
    factors.push_back(held.elementBytes);
    std::uint64_t bytes = 0;
    bool inside = box.count.size() == held.shape.size() && productFits(factors, kLargestBox, &bytes);
    for (std::size_t axis = 0; inside && axis < held.shape.size(); ++axis)
        inside = box.start[axis] <= held.shape[axis] && box.count[axis] <= held.shape[axis] - box.start[axis];
    if (!inside)
        return dataError(subject(held.path), "a part of shape " + shapeText(box.count) + " does not exist or is too large",
                         "a part of " + shapeText(held.shape) + " of at most " + std::to_string(kLargestBox) + " bytes");
    return bytes;
}

Expected<std::vector<std::byte>> Hdf5Boxes::readHeld(const Held &held, const BoxMessage &box, std::uint64_t bytes) const
{
    // Zeros, so that a filter of the library that gives less than a chunk never shows old memory.
    std::vector<std::byte> out(static_cast<std::size_t>(bytes));
    if (out.empty())
        return out;
    const Hdf5Handle fileSpace(H5Dget_space(held.dataset.get()), H5Sclose);
    const std::vector<hsize_t> start(box.start.begin(), box.start.end());
    const std::vector<hsize_t> count(box.count.begin(), box.count.end());
    const Hdf5Handle memorySpace(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose);
    if (!held.scalar)
        H5Sselect_hyperslab(fileSpace.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
    if (H5Dread(held.dataset.get(), held.type.get(), memorySpace.get(), fileSpace.get(), H5P_DEFAULT, out.data()) < 0)
        return dataError(subject(held.path),
                         "rows " + std::to_string(start[0]) + " to " + std::to_string(start[0] + count[0]) +
                             " cannot be read (" + hdf5Reason() + ")",
                         "intact data");
    return out;
}

Expected<std::vector<std::byte>> Hdf5Boxes::read(const BoxMessage &box)
{
    const Hdf5Lock lock;
    const Expected<const Held *> held = hold(box.path);
    if (!held)
        return tl::make_unexpected(held.error());
    // Pointers into the library's heap mean nothing in another process.
    if (H5Tdetect_class((*held)->type.get(), H5T_VLEN) > 0 || H5Tdetect_class((*held)->type.get(), H5T_REFERENCE) > 0 ||
        H5Tis_variable_str((*held)->type.get()) > 0)
        return dataError(subject(box.path), "holds no numbers", "a type of fixed size");
    const Expected<std::uint64_t> bytes = bytesOf(**held, box);
    if (!bytes)
        return tl::make_unexpected(bytes.error());
    return readHeld(**held, box, *bytes);
}

Expected<std::vector<std::string>> Hdf5Boxes::texts(const std::string &path)
{
    constexpr std::uint64_t kMostTexts = std::uint64_t{1} << 26;
    constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 29;
    const Hdf5Lock lock;
    const Expected<const Held *> found = hold(path);
    if (!found)
        return tl::make_unexpected(found.error());
    const Held &held = **found;
    std::uint64_t count = 0;
    std::vector<std::uint64_t> factors = held.shape;
    factors.push_back(std::max<std::size_t>(held.elementBytes, 1));
    if (H5Tget_class(held.type.get()) != H5T_STRING || !productFits(held.shape, kMostTexts, &count) ||
        !productFits(factors, kMostBytes))
        return dataError(subject(path), "is no readable list of texts", "at most 2^26 texts and 2^29 bytes");
    const bool variable = H5Tis_variable_str(held.type.get()) > 0;
    std::vector<char> bytes(static_cast<std::size_t>(count) * (variable ? sizeof(char *) : held.elementBytes) + 1);
    if (count > 0 && H5Dread(held.dataset.get(), held.type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0)
        return dataError(subject(path), "texts cannot be read (" + hdf5Reason() + ")", "intact data");
    std::vector<std::string> texts(static_cast<std::size_t>(count));
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (!variable) {
            const char *from = bytes.data() + i * held.elementBytes;
            texts[i].assign(from, ::strnlen(from, held.elementBytes));
            continue;
        }
        char *text = nullptr;
        std::memcpy(&text, bytes.data() + i * sizeof(char *), sizeof text);
        // One long text may stand under many entries.
        total += text != nullptr ? std::strlen(text) : 0;
        if (total <= kMostBytes)
            texts[i] = text != nullptr ? text : "";
        H5free_memory(text);
    }
    if (total > kMostBytes)
        return dataError(subject(path), "holds " + std::to_string(total) + " bytes of text", "at most 2^29 bytes");
    return texts;
}

/// The address is trusted only after its first bytes are those the library gives.
StorageMap Hdf5Boxes::contiguousStorage(const Held &held) const
{
    constexpr std::uint64_t kCompared = 65536;
    StorageMap map;
    std::vector<std::uint64_t> factors = held.shape;
    factors.push_back(held.elementBytes);
    std::uint64_t bytes = 0;
    const haddr_t offset = H5Dget_offset(held.dataset.get());
    if (offset == HADDR_UNDEF || !m_raw || !productFits(factors, m_raw->size(), &bytes) || bytes == 0 ||
        offset > m_raw->size() - bytes)
        return map;
    const std::uint64_t rowBytes = bytes / held.shape[0];
    BoxMessage first{held.path, std::vector<std::uint64_t>(held.shape.size(), 0), held.shape};
    first.count[0] = std::min(held.shape[0], std::max<std::uint64_t>(1, kCompared / rowBytes));
    if (first.count[0] * rowBytes > kLargestBox)
        return map;
    const Expected<std::vector<std::byte>> byLibrary = readHeld(held, first, first.count[0] * rowBytes);
    std::vector<std::byte> byAddress(byLibrary ? byLibrary->size() : 0);
    if (!byLibrary || !m_raw->read(offset, byAddress) || *byLibrary != byAddress)
        return map;
    map.kind = StorageKind::Contiguous;
    map.offset = offset;
    return map;
}

StorageMap Hdf5Boxes::chunkedStorage(const Held &held, const BoxMessage &box) const
{
    std::array<hsize_t, H5S_MAX_RANK> dims{};
    const int rank = H5Pget_chunk(held.creation.get(), static_cast<int>(dims.size()), dims.data());
    const std::vector<ChunkFilter> filters = chunkFilters(held.creation.get());
    const bool own = std::all_of(filters.begin(), filters.end(), [](const ChunkFilter &f) { return isOwnFilter(f.id); });
    ChunkedDataset chunked{held.dataset.get(), held.shape, {dims.begin(), dims.begin() + std::max(rank, 0)}, held.elementBytes};
    if (!own || !m_raw || held.scalar || chunked.chunk.size() != held.shape.size())
        return {};
    return chunkTable(*m_file, *m_raw, chunked, box);
}

Expected<StorageMap> Hdf5Boxes::storage(const BoxMessage &box)
{
    const Hdf5Lock lock;
    const Expected<const Held *> held = hold(box.path);
    if (!held)
        return tl::make_unexpected(held.error());
    // Elements of variable length are references: comparing bytes would compare (and leak) pointers.
    const std::int64_t type = (*held)->type.get();
    if (H5Tis_variable_str(type) > 0 || H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tdetect_class(type, H5T_REFERENCE) > 0)
        return StorageMap();
    if (H5Pget_external_count((*held)->creation.get()) > 0 || !inThisFile((*held)->dataset.get(), m_file->id()))
        return StorageMap();
    switch (H5Pget_layout((*held)->creation.get())) {
    case H5D_CONTIGUOUS:
        return contiguousStorage(**held);
    case H5D_CHUNKED: {
        if (const Expected<std::uint64_t> bytes = bytesOf(**held, box); !bytes && !box.count.empty())
            return tl::make_unexpected(bytes.error());
        return chunkedStorage(**held, box);
    }
    default:
        return StorageMap();
    }
}

} // namespace planish
