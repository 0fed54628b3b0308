// The chunk index of the older HDF5 format, read without the library: object header, layout message, B-tree of version 1
// (HDF5 File Format Specification 3.0, IV.A.2.i and III.A.1). Every length is checked; anything unexpected gives up.
#include <algorithm>
#include <set>

#include "core/io/byte_stream.h"
#include "core/io/hdf5_chunk_table.h"

namespace planish {

namespace {

constexpr unsigned kLayoutMessage = 8, kContinuation = 16;
constexpr std::size_t kMostChunks = std::size_t{1} << 22;
constexpr std::size_t kLargestBlock = std::size_t{1} << 20;

struct Piece {
    std::uint64_t at = 0, bytes = 0;
};

class HeaderSearch {
public:
    HeaderSearch(const RawFile &raw, std::uint64_t base) : m_raw(raw), m_base(base) {}

    /// Address of the chunk tree in the layout message of the object at `address`.
    std::optional<std::uint64_t> treeOf(std::uint64_t address, std::size_t rank)
    {
        m_rank = rank;
        std::vector<std::byte> prefix = block({address, 64});
        if (prefix.empty())
            return std::nullopt;
        ByteReader in(prefix);
        if (prefix[0] == std::byte{1})
            startOld(in, address);
        else if (in.get<std::uint32_t>() == 0x5244484F) // "OHDR"
            startNew(in, address);
        constexpr int kMostPieces = 64;
        for (int i = 0; i < kMostPieces && !m_pieces.empty() && !m_tree; ++i) {
            const Piece piece = m_pieces.back();
            m_pieces.pop_back();
            messages(block(piece));
        }
        return m_tree;
    }

    std::vector<std::byte> block(const Piece &piece) const
    {
        std::uint64_t at = 0;
        if (piece.bytes > kLargestBlock || __builtin_add_overflow(piece.at, m_base, &at) || at > m_raw.size())
            return {};
        std::vector<std::byte> bytes(static_cast<std::size_t>(std::min(piece.bytes, m_raw.size() - at)));
        return m_raw.read(at, bytes) ? bytes : std::vector<std::byte>();
    }

private:
    void startOld(ByteReader &in, std::uint64_t address)
    {
        in.get<std::uint64_t>(); // version, number of messages, references
        m_pieces.push_back({address + 16, in.get<std::uint32_t>()});
    }

    void startNew(ByteReader &in, std::uint64_t address)
    {
        m_new = true;
        const auto version = in.get<std::uint8_t>();
        const auto flags = in.get<std::uint8_t>();
        std::uint64_t at = address + 6 + ((flags & 0x20) != 0 ? 16 : 0) + ((flags & 0x10) != 0 ? 4 : 0);
        m_creationOrder = (flags & 0x04) != 0;
        const std::size_t sizeBytes = std::size_t{1} << (flags & 3);
        const std::vector<std::byte> size = block({at, sizeBytes});
        std::uint64_t bytes = 0;
        for (std::size_t i = size.size(); i-- > 0;)
            bytes = bytes << 8 | static_cast<std::uint64_t>(size[i]);
        if (version == 2 && size.size() == sizeBytes)
            m_pieces.push_back({at + sizeBytes, bytes});
    }

    void messages(const std::vector<std::byte> &bytes)
    {
        const std::span<const std::byte> all(bytes);
        std::size_t at = 0;
        const std::size_t head = m_new ? (m_creationOrder ? 6 : 4) : 8;
        while (bytes.size() - at >= head && !m_tree) {
            ByteReader in(all.subspan(at));
            const unsigned type = m_new ? in.get<std::uint8_t>() : in.get<std::uint16_t>();
            const std::size_t size = in.get<std::uint16_t>();
            if (size > bytes.size() - at - head)
                return;
            ByteReader body(all.subspan(at + head, size));
            if (type == kLayoutMessage)
                layout(body);
            else if (type == kContinuation)
                continuation(body);
            at += head + size;
        }
    }

    void layout(ByteReader &in)
    {
        const auto version = in.get<std::uint8_t>();
        const auto kind = in.get<std::uint8_t>();
        const auto dimensions = in.get<std::uint8_t>();
        const auto address = in.get<std::uint64_t>();
        if (!in.bad() && version == 3 && kind == 2 && dimensions == m_rank + 1)
            m_tree = address;
    }

    void continuation(ByteReader &in)
    {
        const auto at = in.get<std::uint64_t>();
        const auto bytes = in.get<std::uint64_t>();
        // Newer headers put a signature in front and a checksum behind.
        if (!in.bad() && (!m_new || bytes > 8))
            m_pieces.push_back(m_new ? Piece{at + 4, bytes - 8} : Piece{at, bytes});
    }

    const RawFile &m_raw;
    std::uint64_t m_base;
    std::size_t m_rank = 0;
    bool m_new = false, m_creationOrder = false;
    std::vector<Piece> m_pieces;
    std::optional<std::uint64_t> m_tree;
};

class TreeWalk {
public:
    TreeWalk(const HeaderSearch &file, const ChunkedDataset &data) : m_file(file), m_data(data) {}

    /// False as soon as a node is not what the format says.
    bool node(std::uint64_t address, int level)
    {
        constexpr std::size_t kHead = 24;
        const std::size_t keyBytes = 8 + 8 * (m_data.shape.size() + 1);
        if (!m_seen.insert(address).second)
            return false;
        std::vector<std::byte> head = m_file.block({address, kHead});
        ByteReader in(head);
        const bool tree = in.get<std::uint32_t>() == 0x45455254 && in.get<std::uint8_t>() == 1; // "TREE"
        const int found = in.get<std::uint8_t>();
        const std::size_t entries = in.get<std::uint16_t>();
        if (in.bad() || !tree || (level >= 0 && found != level) || found > 32)
            return false;
        const std::size_t bytes = entries * (keyBytes + 8);
        const std::vector<std::byte> body = m_file.block({address + kHead, bytes});
        if (body.size() != bytes)
            return false;
        ByteReader items(body);
        for (std::size_t i = 0; i < entries; ++i)
            if (!entry(items, found))
                return false;
        return true;
    }

    std::vector<ChunkEntry> entries;

private:
    bool entry(ByteReader &in, int level)
    {
        ChunkEntry chunk;
        chunk.bytes = in.get<std::uint32_t>();
        chunk.skippedFilters = in.get<std::uint32_t>();
        std::vector<std::uint64_t> origin(m_data.shape.size());
        for (std::uint64_t &along : origin)
            along = in.get<std::uint64_t>();
        in.get<std::uint64_t>(); // the axis of the element's bytes
        chunk.offset = in.get<std::uint64_t>();
        if (in.bad())
            return false;
        if (level > 0)
            return node(chunk.offset, level - 1);
        // Chunks cut off by a later, smaller shape may stay in the tree.
        const std::optional<std::uint64_t> number = chunkNumber(m_data.shape, m_data.chunk, origin);
        if (!number)
            return true;
        chunk.number = *number;
        entries.push_back(chunk);
        return entries.size() <= kMostChunks;
    }

    const HeaderSearch &m_file;
    const ChunkedDataset &m_data;
    std::set<std::uint64_t> m_seen;
};

} // namespace

std::optional<std::vector<ChunkEntry>> readChunkTree(const RawFile &raw, std::uint64_t base, std::uint64_t objectHeader,
                                                     const ChunkedDataset &data)
{
    HeaderSearch file(raw, base);
    const std::optional<std::uint64_t> tree = file.treeOf(objectHeader, data.shape.size());
    if (!tree)
        return std::nullopt;
    if (*tree == UINT64_MAX)
        return std::vector<ChunkEntry>();
    TreeWalk walk(file, data);
    if (!walk.node(*tree, -1))
        return std::nullopt;
    std::sort(walk.entries.begin(), walk.entries.end(), [](const ChunkEntry &a, const ChunkEntry &b) { return a.number < b.number; });
    const auto repeated = std::adjacent_find(walk.entries.begin(), walk.entries.end(),
                                             [](const ChunkEntry &a, const ChunkEntry &b) { return a.number == b.number; });
    if (repeated != walk.entries.end())
        return std::nullopt;
    return std::move(walk.entries);
}

} // namespace planish
