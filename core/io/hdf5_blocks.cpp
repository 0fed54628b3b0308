// Stored bytes of datasets: contiguous data by positioned reads once they agree with the library, chunks decoded by our own
// filters so that a short or damaged chunk is an error, everything else by H5Dread of the stored type.
#define H5_USE_110_API
#include <hdf5.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "core/io/chunk_copy.h"
#include "core/io/hdf5_dataset.h"
#include "core/io/hdf5_file.h"
#include "core/io/hdf5_filters.h"
#include "core/io/printable.h"
#include "core/io/raw_file.h"
#include "kernels/cpu/workers.h"

namespace planish {

namespace {

constexpr std::size_t kBatchBytes = std::size_t{32} << 20; ///< stored bytes of chunks held before they are decoded together
constexpr std::size_t kChunkCache = std::size_t{64} << 20;

enum class Path { Unknown, Positioned, Chunks, Library };

/// What is needed to read one dataset again and again.
struct Prepared {
    Hdf5Handle dataset, type;
    Path path = Path::Unknown;
    std::vector<std::uint64_t> shape, chunk; ///< at least one axis
    std::size_t elementBytes = 0;
    std::uint64_t rowBytes = 0, chunkBytes = 0, offset = 0;
    std::vector<ChunkFilter> filters;
    bool wholeBorderUnfiltered = false; ///< H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS
    std::vector<std::byte> fill;        ///< one element, for chunks that were never written
};

struct StoredChunk {
    std::vector<std::uint64_t> origin;
    std::vector<std::byte> bytes;
    std::uint32_t skipped = 0;
    bool missing = false;
    Expected<void> decoded;
};

std::string originText(const std::vector<std::uint64_t> &origin)
{
    return "chunk at " + shapeText(origin);
}

class Hdf5Blocks final : public BlockSource {
public:
    explicit Hdf5Blocks(std::shared_ptr<const Hdf5File> file) : m_file(std::move(file)), m_raw(RawFile::open(m_file->path())) {}

    Expected<void> readRows(const DatasetInfo &info, std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) override
    {
        Box box;
        box.start.assign(std::max<std::size_t>(info.shape.size(), 1), 0);
        box.count = info.shape.empty() ? std::vector<std::uint64_t>{1} : info.shape;
        const std::uint64_t rows = box.count[0];
        if (begin > end || end > rows)
            return dataError(subject(info), "rows " + std::to_string(begin) + " to " + std::to_string(end) + " do not exist",
                             "rows below " + std::to_string(rows));
        box.start[0] = begin;
        box.count[0] = end - begin;
        return read(info, box, out);
    }

    Expected<void> readBox(const DatasetInfo &info, const std::vector<std::uint64_t> &start,
                           const std::vector<std::uint64_t> &count, std::span<std::byte> out) override
    {
        return read(info, Box{start, count}, out);
    }

    Expected<std::vector<std::string>> readText(const DatasetInfo &info) override;

    std::optional<StoredRun> storedRun(const DatasetInfo &info) override
    {
        const Expected<Prepared *> prepared = prepare(info);
        if (!prepared || (*prepared)->path != Path::Positioned)
            return std::nullopt;
        return StoredRun{&*m_raw, (*prepared)->offset};
    }

private:
    std::string subject(const DatasetInfo &info) const { return m_file->path() + ":" + printable(info.path); }

    Expected<void> read(const DatasetInfo &info, const Box &box, std::span<std::byte> out);
    Expected<void> readPositioned(const Prepared &data, const Box &box, std::span<std::byte> out) const;
    Expected<Prepared *> prepare(const DatasetInfo &info);
    Path choosePath(const DatasetInfo &info, Prepared &data);
    bool positionedAgrees(const DatasetInfo &info, Prepared &data);
    void readFill(std::int64_t creation, Prepared &data);
    Expected<void> readByLibrary(const DatasetInfo &info, const Prepared &data, const Box &box, std::span<std::byte> out);
    Expected<void> readChunks(const DatasetInfo &info, const Prepared &data, const Box &box, std::span<std::byte> out);
    Expected<StoredChunk> fetch(const DatasetInfo &info, const Prepared &data, std::vector<std::uint64_t> origin);
    Expected<void> decodeBatch(const DatasetInfo &info, const Prepared &data, std::vector<StoredChunk> &batch, const Box &box,
                               std::span<std::byte> out);

    std::shared_ptr<const Hdf5File> m_file;
    Expected<RawFile> m_raw;
    std::map<std::string, Prepared> m_prepared;
};

Expected<Prepared *> Hdf5Blocks::prepare(const DatasetInfo &info)
{
    if (const auto found = m_prepared.find(info.path); found != m_prepared.end())
        return &found->second;
    const Hdf5Lock lock;
    Prepared data;
    const Hdf5Handle access = datasetAccess(m_file->trustedFolder(), kChunkCache);
    data.dataset = Hdf5Handle(H5Dopen2(m_file->id(), info.path.c_str(), access.get()), H5Dclose);
    if (!data.dataset)
        return dataError(subject(info), "cannot be opened (" + hdf5Reason() + ")", "a readable dataset");
    data.type = Hdf5Handle(H5Dget_type(data.dataset.get()), H5Tclose);
    data.elementBytes = H5Tget_size(data.type.get());
    data.shape = info.shape.empty() ? std::vector<std::uint64_t>{1} : info.shape;
    std::vector<std::uint64_t> factors(data.shape.begin() + 1, data.shape.end());
    factors.push_back(data.elementBytes);
    if (!productFits(factors, UINT64_MAX, &data.rowBytes) || data.elementBytes != info.elementBytes)
        return dataError(subject(info), "has a shape or type that cannot be read", "the shape seen when the file was opened");
    data.path = choosePath(info, data);
    return &m_prepared.emplace(info.path, std::move(data)).first->second;
}

Expected<void> Hdf5Blocks::read(const DatasetInfo &info, const Box &box, std::span<std::byte> out)
{
    Expected<Prepared *> prepared = prepare(info);
    if (!prepared)
        return tl::make_unexpected(prepared.error());
    const Prepared &data = **prepared;
    std::vector<std::uint64_t> factors = box.count;
    factors.push_back(data.elementBytes);
    std::uint64_t bytes = 0;
    bool inside = box.start.size() == data.shape.size() && box.count.size() == data.shape.size() &&
                  productFits(factors, UINT64_MAX, &bytes) && bytes == out.size();
    for (std::size_t axis = 0; inside && axis < data.shape.size(); ++axis)
        inside = box.start[axis] <= data.shape[axis] && box.count[axis] <= data.shape[axis] - box.start[axis];
    if (!inside)
        return dataError(subject(info), "a part of shape " + shapeText(box.count) + " does not exist",
                         "a part of " + shapeText(data.shape));
    if (out.empty())
        return {};
    switch (data.path) {
    case Path::Positioned:
        return readPositioned(data, box, out);
    case Path::Chunks:
        return readChunks(info, data, box, out);
    default:
        return readByLibrary(info, data, box, out);
    }
}

/// One read per run of bytes that lie together in the file.
Expected<void> Hdf5Blocks::readPositioned(const Prepared &data, const Box &box, std::span<std::byte> out) const
{
    return forEachStoredRun(box, data.shape, data.elementBytes, [&](std::uint64_t from, std::size_t to, std::size_t bytes) {
        return m_raw->read(data.offset + from, out.subspan(to, bytes));
    });
}

Path Hdf5Blocks::choosePath(const DatasetInfo &info, Prepared &data)
{
    // Elements of variable length are references in the file: comparing bytes would compare (and leak) pointers.
    if (H5Tis_variable_str(data.type.get()) > 0 || H5Tdetect_class(data.type.get(), H5T_VLEN) > 0)
        return Path::Library;
    if (info.chunk.empty())
        return info.offset >= 0 && m_raw && positionedAgrees(info, data) ? Path::Positioned : Path::Library;
    const Hdf5Handle creation(H5Dget_create_plist(data.dataset.get()), H5Pclose);
    data.filters = chunkFilters(creation.get());
    data.chunk = info.chunk;
    std::vector<std::uint64_t> factors = data.chunk;
    factors.push_back(data.elementBytes);
    const bool own =
        std::all_of(data.filters.begin(), data.filters.end(), [](const ChunkFilter &f) { return isOwnFilter(f.id); });
    if (!own || data.chunk.size() != data.shape.size() || !productFits(factors, kChunkBudget, &data.chunkBytes))
        return Path::Library;
    unsigned options = 0;
    H5Pget_chunk_opts(creation.get(), &options);
    data.wholeBorderUnfiltered = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
    readFill(creation.get(), data);
    return Path::Chunks;
}

/// The address is trusted only after its first bytes are those the library gives.
bool Hdf5Blocks::positionedAgrees(const DatasetInfo &info, Prepared &data)
{
    constexpr std::uint64_t kCompared = 65536;
    if (data.rowBytes == 0 || data.shape[0] == 0 || data.rowBytes > kChunkBudget)
        return false;
    const std::uint64_t rows = std::min(data.shape[0], std::max<std::uint64_t>(1, kCompared / data.rowBytes));
    Box first{std::vector<std::uint64_t>(data.shape.size(), 0), data.shape};
    first.count[0] = rows;
    std::vector<std::byte> byLibrary(static_cast<std::size_t>(rows * data.rowBytes));
    std::vector<std::byte> byAddress(byLibrary.size());
    data.offset = static_cast<std::uint64_t>(info.offset);
    const std::uint64_t last = data.shape[0] * data.rowBytes;
    if (data.offset > m_raw->size() || last > m_raw->size() - data.offset)
        return false;
    return readByLibrary(info, data, first, byLibrary) && m_raw->read(data.offset, byAddress) && byLibrary == byAddress;
}

void Hdf5Blocks::readFill(std::int64_t creation, Prepared &data)
{
    data.fill.assign(data.elementBytes, std::byte{0});
    H5D_fill_value_t status = H5D_FILL_VALUE_UNDEFINED;
    if (H5Pfill_value_defined(creation, &status) >= 0 && status == H5D_FILL_VALUE_USER_DEFINED)
        H5Pget_fill_value(creation, data.type.get(), data.fill.data());
}

Expected<void> Hdf5Blocks::readByLibrary(const DatasetInfo &info, const Prepared &data, const Box &box, std::span<std::byte> out)
{
    const Hdf5Lock lock;
    // A filter of the library that gives less than a chunk must not show old memory.
    std::fill(out.begin(), out.end(), std::byte{0});
    const Hdf5Handle fileSpace(H5Dget_space(data.dataset.get()), H5Sclose);
    const std::vector<hsize_t> start(box.start.begin(), box.start.end());
    const std::vector<hsize_t> count(box.count.begin(), box.count.end());
    const Hdf5Handle memorySpace(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose);
    if (!info.shape.empty())
        H5Sselect_hyperslab(fileSpace.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
    if (H5Dread(data.dataset.get(), data.type.get(), memorySpace.get(), fileSpace.get(), H5P_DEFAULT, out.data()) < 0)
        return dataError(subject(info),
                         "rows " + std::to_string(start[0]) + " to " + std::to_string(start[0] + count[0]) + " cannot be read (" +
                             hdf5Reason() + ")",
                         "intact data");
    return {};
}

Expected<StoredChunk> Hdf5Blocks::fetch(const DatasetInfo &info, const Prepared &data, std::vector<std::uint64_t> origin)
{
    StoredChunk chunk;
    chunk.origin = std::move(origin);
    const std::vector<hsize_t> offset(chunk.origin.begin(), chunk.origin.end());
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t size = 0;
    if (H5Dget_chunk_info_by_coord(data.dataset.get(), offset.data(), &mask, &address, &size) < 0)
        return dataError(subject(info), originText(chunk.origin) + " cannot be found (" + hdf5Reason() + ")",
                         "an intact chunk index");
    chunk.missing = address == HADDR_UNDEF || size == 0;
    if (chunk.missing)
        return chunk;
    if (size > 2 * data.chunkBytes + 65536 || (m_raw && size > m_raw->size()))
        return dataError(subject(info), originText(chunk.origin) + " claims " + std::to_string(size) + " stored bytes",
                         "about " + std::to_string(data.chunkBytes) + " at most");
    chunk.bytes.resize(static_cast<std::size_t>(size));
    std::uint32_t skipped = 0;
    if (H5Dread_chunk(data.dataset.get(), H5P_DEFAULT, offset.data(), &skipped, chunk.bytes.data()) < 0)
        return dataError(subject(info), originText(chunk.origin) + " cannot be read (" + hdf5Reason() + ")", "an intact chunk");
    const bool border = data.wholeBorderUnfiltered && reachesBeyond(chunk.origin, data.chunk, data.shape);
    chunk.skipped = border ? ~std::uint32_t{0} : skipped;
    return chunk;
}

Expected<void> Hdf5Blocks::decodeBatch(const DatasetInfo &info, const Prepared &data, std::vector<StoredChunk> &batch,
                                       const Box &box, std::span<std::byte> out)
{
    cpu::Workers().forEach(batch.size(), [&](std::size_t i) {
        StoredChunk &chunk = batch[i];
        const ChunkPlace place{chunk.origin, data.chunk, data.elementBytes, box};
        if (chunk.missing)
            return fillChunk(place, data.fill, out);
        Expected<std::vector<std::byte>> values =
            undoFilters(std::move(chunk.bytes), data.filters, chunk.skipped, static_cast<std::size_t>(data.chunkBytes));
        if (values)
            copyChunk(place, *values, out);
        else
            chunk.decoded = tl::make_unexpected(values.error());
    });
    for (const StoredChunk &chunk : batch) {
        if (!chunk.decoded) {
            Error error = chunk.decoded.error();
            error.subject = subject(info);
            error.what = originText(chunk.origin) + ": " + error.what;
            return tl::make_unexpected(std::move(error));
        }
    }
    batch.clear();
    return {};
}

Expected<void> Hdf5Blocks::readChunks(const DatasetInfo &info, const Prepared &data, const Box &box, std::span<std::byte> out)
{
    std::vector<StoredChunk> batch;
    std::size_t held = 0;
    ChunkOrigins origins(box, data.chunk);
    while (const std::optional<std::vector<std::uint64_t>> origin = origins.next()) {
        const Hdf5Lock lock;
        Expected<StoredChunk> chunk = fetch(info, data, *origin);
        if (!chunk)
            return tl::make_unexpected(chunk.error());
        held += chunk->bytes.size() + static_cast<std::size_t>(data.chunkBytes) / 4;
        batch.push_back(std::move(*chunk));
        if (held < kBatchBytes)
            continue;
        if (Expected<void> decoded = decodeBatch(info, data, batch, box, out); !decoded)
            return decoded;
        held = 0;
    }
    return decodeBatch(info, data, batch, box, out);
}

Expected<std::vector<std::string>> Hdf5Blocks::readText(const DatasetInfo &info)
{
    constexpr std::uint64_t kMostTexts = std::uint64_t{1} << 26;
    std::uint64_t count = 0;
    std::vector<std::uint64_t> factors = info.shape;
    factors.push_back(std::max<std::size_t>(info.elementBytes, 1));
    if (info.type != StoredType::Text || !productFits(info.shape, kMostTexts, &count) ||
        !productFits(factors, std::uint64_t{1} << 31))
        return dataError(subject(info), "is no readable list of texts (" + info.typeText + ", " + shapeText(info.shape) + ")",
                         "at most 2^26 texts");
    const Hdf5Lock lock;
    Expected<Prepared *> prepared = prepare(info);
    if (!prepared)
        return tl::make_unexpected(prepared.error());
    const Prepared &data = **prepared;
    const bool variable = H5Tis_variable_str(data.type.get()) > 0;
    std::vector<char> bytes(static_cast<std::size_t>(count) * (variable ? sizeof(char *) : data.elementBytes) + 1);
    if (count > 0 && H5Dread(data.dataset.get(), data.type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0)
        return dataError(subject(info), "texts cannot be read (" + hdf5Reason() + ")", "intact data");
    std::vector<std::string> texts(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (!variable) {
            const char *from = bytes.data() + i * data.elementBytes;
            texts[i].assign(from, ::strnlen(from, data.elementBytes));
            continue;
        }
        char *text = nullptr;
        std::memcpy(&text, bytes.data() + i * sizeof(char *), sizeof text);
        texts[i] = text != nullptr ? text : "";
        H5free_memory(text);
    }
    return texts;
}

} // namespace

std::unique_ptr<BlockSource> makeBlockSource(std::shared_ptr<const Hdf5File> file)
{
    return std::make_unique<Hdf5Blocks>(std::move(file));
}

} // namespace planish
