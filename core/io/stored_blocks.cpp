#include "core/io/stored_blocks.h"

#include <oneapi/tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "core/io/chunk_copy.h"
#include "core/io/chunk_decoder.h"
#include "core/io/chunk_filters.h"
#include "core/io/hdf5_remote.h"
#include "core/io/printable.h"
#include "kernels/cpu/workers.h"

namespace planish {

namespace {

constexpr std::uint64_t kLargestChunk = std::uint64_t{128} << 20;
constexpr std::size_t kReadBytes = std::size_t{1} << 20;    ///< of one positioned read, small enough to stay in the cache
constexpr std::uint64_t kReaderBox = std::uint64_t{16} << 20; ///< what the reader process is asked for at once

/// What is needed to read one dataset again and again.
struct Prepared {
    StorageMap storage;
    std::unordered_map<std::uint64_t, ChunkEntry> chunks; ///< by number in the grid
    std::vector<std::uint64_t> shape;                     ///< at least one axis
    std::uint64_t rowBytes = 0, chunkBytes = 0;
    std::vector<std::byte> fill; ///< one element
};

/// The first error of several threads.
class FirstError {
public:
    void set(Error error)
    {
        const std::lock_guard lock(m_mutex);
        if (!m_error)
            m_error = std::move(error);
        m_failed = true;
    }
    bool failed() const { return m_failed; }
    Expected<void> result() const { return m_error ? Expected<void>(tl::make_unexpected(*m_error)) : Expected<void>(); }

private:
    std::mutex m_mutex;
    std::atomic<bool> m_failed = false;
    std::optional<Error> m_error;
};

class StoredBlocks final : public BlockSource {
public:
    StoredBlocks(std::shared_ptr<Hdf5Remote> remote, RawFile raw) : m_remote(std::move(remote)), m_raw(std::move(raw)) {}

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

    Expected<std::vector<std::string>> readText(const DatasetInfo &info) override
    {
        if (info.type != StoredType::Text)
            return dataError(subject(info), "is no list of texts (" + info.typeText + ", " + shapeText(info.shape) + ")", "texts");
        return m_remote->texts(info.path);
    }

    std::optional<StoredRun> storedRun(const DatasetInfo &info) override
    {
        if (!info.chunk.empty())
            return std::nullopt;
        const std::vector<std::uint64_t> shape = info.shape.empty() ? std::vector<std::uint64_t>{1} : info.shape;
        const Expected<Prepared *> prepared = prepare(info, Box{std::vector<std::uint64_t>(shape.size(), 0), shape});
        if (!prepared || (*prepared)->storage.kind != StorageKind::Contiguous)
            return std::nullopt;
        return StoredRun{&m_raw, (*prepared)->storage.offset};
    }

private:
    std::string subject(const DatasetInfo &info) const { return m_raw.path() + ":" + printable(info.path); }

    Expected<void> read(const DatasetInfo &info, const Box &box, std::span<std::byte> out);
    Expected<Prepared *> prepare(const DatasetInfo &info, const Box &box);
    Expected<void> place(const DatasetInfo &info, StorageMap storage, Prepared &data) const;
    Expected<void> readPositioned(const DatasetInfo &info, const Prepared &data, const Box &box, std::span<std::byte> out) const;
    Expected<void> readChunks(const DatasetInfo &info, const Prepared &data, const Box &box, std::span<std::byte> out);
    Expected<void> readChunk(const DatasetInfo &info, const Prepared &data, const ChunkPlace &where, std::span<std::byte> out);
    Expected<void> readByReader(const DatasetInfo &info, Box box, std::span<std::byte> out);

    std::shared_ptr<Hdf5Remote> m_remote;
    RawFile m_raw;
    std::map<std::string, Prepared> m_prepared;
    tbb::enumerable_thread_specific<ChunkDecoder> m_decoders;
};

std::uint64_t numberOf(const DatasetInfo &info, const std::vector<std::uint64_t> &origin)
{
    std::uint64_t number = 0;
    for (std::size_t axis = 0; axis < origin.size(); ++axis)
        number = number * ((info.shape[axis] + info.chunk[axis] - 1) / info.chunk[axis]) + origin[axis] / info.chunk[axis];
    return number;
}

/// Takes over what the reader says, as far as it can be true.
Expected<void> StoredBlocks::place(const DatasetInfo &info, StorageMap storage, Prepared &data) const
{
    const auto wrong = [&](const std::string &what) { return dataError(subject(info), what, "an intact HDF5 file"); };
    std::uint64_t bytes = 0;
    if (storage.kind == StorageKind::Contiguous &&
        (!productFits({data.shape[0], data.rowBytes}, m_raw.size(), &bytes) || storage.offset > m_raw.size() - bytes))
        return wrong("lies beyond the end of the file");
    if (storage.kind == StorageKind::Chunked) {
        std::vector<std::uint64_t> factors = info.chunk;
        factors.push_back(info.elementBytes);
        if (info.chunk.size() != info.shape.size() || !productFits(factors, kLargestChunk, &data.chunkBytes))
            return wrong("has chunks " + shapeText(info.chunk) + " that are too large or of another rank");
        data.chunks.clear();
        for (const ChunkEntry &chunk : storage.chunks)
            data.chunks.emplace(chunk.number, chunk);
        storage.chunks.clear();
    }
    data.storage = std::move(storage);
    return {};
}

Expected<Prepared *> StoredBlocks::prepare(const DatasetInfo &info, const Box &box)
{
    const auto found = m_prepared.find(info.path);
    if (found != m_prepared.end() && found->second.storage.complete)
        return &found->second;
    Prepared data;
    data.shape = info.shape.empty() ? std::vector<std::uint64_t>{1} : info.shape;
    std::vector<std::uint64_t> factors(data.shape.begin() + 1, data.shape.end());
    factors.push_back(info.elementBytes);
    if (!productFits(factors, UINT64_MAX, &data.rowBytes) || info.elementBytes == 0)
        return dataError(subject(info), "has a shape or type that cannot be read", "numbers of a sensible shape");
    data.fill = info.fill.empty() ? std::vector<std::byte>(info.elementBytes) : info.fill;
    Expected<StorageMap> storage = m_remote->storage({info.path, box.start, box.count});
    if (!storage)
        return tl::make_unexpected(storage.error());
    if (Expected<void> placed = place(info, std::move(*storage), data); !placed)
        return tl::make_unexpected(placed.error());
    return &m_prepared.insert_or_assign(info.path, std::move(data)).first->second;
}

Expected<void> StoredBlocks::read(const DatasetInfo &info, const Box &box, std::span<std::byte> out)
{
    const std::vector<std::uint64_t> shape = info.shape.empty() ? std::vector<std::uint64_t>{1} : info.shape;
    std::vector<std::uint64_t> factors = box.count;
    factors.push_back(info.elementBytes);
    std::uint64_t bytes = 0;
    bool inside = box.start.size() == shape.size() && box.count.size() == shape.size() &&
                  productFits(factors, UINT64_MAX, &bytes) && bytes == out.size();
    for (std::size_t axis = 0; inside && axis < shape.size(); ++axis)
        inside = box.start[axis] <= shape[axis] && box.count[axis] <= shape[axis] - box.start[axis];
    if (!inside)
        return dataError(subject(info), "a part of shape " + shapeText(box.count) + " does not exist",
                         "a part of " + shapeText(shape));
    if (out.empty())
        return {};
    const Expected<Prepared *> prepared = prepare(info, box);
    if (!prepared)
        return tl::make_unexpected(prepared.error());
    switch ((*prepared)->storage.kind) {
    case StorageKind::Contiguous:
        return readPositioned(info, **prepared, box, out);
    case StorageKind::Chunked:
        return readChunks(info, **prepared, box, out);
    default:
        return readByReader(info, box, out);
    }
}

/// One read per run of bytes that lie together in the file; long runs in pieces, by all threads.
Expected<void> StoredBlocks::readPositioned(const DatasetInfo &info, const Prepared &data, const Box &box,
                                            std::span<std::byte> out) const
{
    return forEachStoredRun(box, data.shape, info.elementBytes, [&](std::uint64_t from, std::size_t to, std::size_t bytes) {
        const std::uint64_t at = data.storage.offset + from;
        const std::span<std::byte> run = out.subspan(to, bytes);
        if (bytes <= 2 * kReadBytes)
            return m_raw.read(at, run);
        FirstError error;
        cpu::Workers().forEach((bytes + kReadBytes - 1) / kReadBytes, [&](std::size_t piece) {
            const std::size_t begin = piece * kReadBytes;
            const Expected<void> read = m_raw.read(at + begin, run.subspan(begin, std::min(kReadBytes, bytes - begin)));
            if (!read)
                error.set(read.error());
        });
        return error.result();
    });
}

Expected<void> StoredBlocks::readChunk(const DatasetInfo &info, const Prepared &data, const ChunkPlace &where,
                                       std::span<std::byte> out)
{
    const auto found = data.chunks.find(numberOf(info, where.origin));
    if (found == data.chunks.end()) {
        fillChunk(where, data.fill, out);
        return {};
    }
    const ChunkEntry &entry = found->second;
    const auto chunkBytes = static_cast<std::size_t>(data.chunkBytes);
    if (entry.bytes > 2 * data.chunkBytes + 65536 || entry.bytes > m_raw.size())
        return chunkError(std::to_string(entry.bytes) + " stored bytes are claimed", "about " + std::to_string(chunkBytes) + " at most");
    ChunkDecoder &decoder = m_decoders.local();
    // A chunk that lies in the block as it lies in the file needs no copy.
    const std::optional<std::size_t> direct = directPlace(where);
    const std::span<std::byte> target = direct ? out.subspan(*direct, chunkBytes) : decoder.room(chunkBytes);
    const std::span<std::byte> stored = decoder.stored(entry.bytes);
    if (Expected<void> read = m_raw.read(entry.offset, stored); !read)
        return read;
    const bool border = info.bordersUnfiltered && reachesBeyond(where.origin, info.chunk, info.shape);
    const std::uint32_t skipped = border ? ~std::uint32_t{0} : entry.skippedFilters;
    if (Expected<void> decoded = decoder.decode(stored, info.filters, skipped, target); !decoded)
        return decoded;
    if (!direct)
        copyChunk(where, target, out);
    return {};
}

Expected<void> StoredBlocks::readChunks(const DatasetInfo &info, const Prepared &data, const Box &box, std::span<std::byte> out)
{
    std::vector<std::vector<std::uint64_t>> all;
    ChunkOrigins origins(box, info.chunk);
    while (std::optional<std::vector<std::uint64_t>> origin = origins.next())
        all.push_back(std::move(*origin));
    FirstError error;
    cpu::Workers().forEach(all.size(), [&](std::size_t i) {
        if (error.failed())
            return;
        const ChunkPlace where{all[i], info.chunk, info.elementBytes, box};
        const Expected<void> done = readChunk(info, data, where, out);
        if (done)
            return;
        Error told = done.error();
        told.what = "chunk at " + shapeText(all[i]) + ": " + told.what;
        told.subject = subject(info);
        error.set(std::move(told));
    });
    return error.result();
}

/// In runs along the first axis, so that no message is large.
Expected<void> StoredBlocks::readByReader(const DatasetInfo &info, Box box, std::span<std::byte> out)
{
    const std::uint64_t end = box.start[0] + box.count[0];
    const std::uint64_t bytesOfOne = out.size() / box.count[0];
    std::uint64_t step = std::max<std::uint64_t>(1, kReaderBox / std::max<std::uint64_t>(bytesOfOne, 1));
    if (!info.chunk.empty())
        step = std::max<std::uint64_t>(step / info.chunk[0], 1) * info.chunk[0];
    for (std::uint64_t begin = box.start[0]; begin < end; begin += box.count[0]) {
        box.start[0] = begin;
        box.count[0] = std::min(step, end - begin);
        const std::span<std::byte> part = out.first(static_cast<std::size_t>(box.count[0] * bytesOfOne));
        if (Expected<void> read = m_remote->read({info.path, box.start, box.count}, part); !read)
            return read;
        out = out.subspan(part.size());
    }
    return {};
}

} // namespace

std::unique_ptr<BlockSource> makeStoredBlocks(std::shared_ptr<Hdf5Remote> remote, RawFile raw)
{
    return std::make_unique<StoredBlocks>(std::move(remote), std::move(raw));
}

} // namespace planish
