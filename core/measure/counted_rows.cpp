#include "core/measure/counted_rows.h"

#include <algorithm>
#include <cstring>

namespace planish
{

namespace
{

// Twice the block size of the reader: keeping this much costs little and saves decompressing most edges again.
constexpr std::size_t kKeepBytes = 64u << 20;

bool kernelKind(StoredType type, StoredKind &kind)
{
    switch (type) {
    case StoredType::F16:
        kind = StoredKind::F16;
        return true;
    case StoredType::Bf16:
        kind = StoredKind::Bf16;
        return true;
    case StoredType::F32:
        kind = StoredKind::F32;
        return true;
    case StoredType::F64:
        kind = StoredKind::F64;
        return true;
    default:
        kind = StoredKind::F64;
        return false;
    }
}

} // namespace

CountedRows::CountedRows(const Dump &dump, const DumpEdge &edge, std::vector<std::int64_t> fileRows)
    : m_dump(dump), m_edge(edge), m_rows(std::move(fileRows))
{
    if (!std::is_sorted(m_rows.begin(), m_rows.end()))
        std::sort(m_rows.begin(), m_rows.end());
    m_raw = kernelKind(edge.storedType, m_kind);
}

Expected<void> CountedRows::visit(const std::function<void(const RawRows &)> &visitor, std::stop_token stop) const
{
    const std::size_t rowBytes = channels() * byteSize(m_kind);
    if (rowBytes == 0 || m_rows.empty())
        return {};
    if (!m_kept.empty()) {
        visitor({m_kind, m_kept.data(), m_rows.size(), rowBytes, 0});
        return {};
    }
    if (m_rows.size() > kKeepBytes / rowBytes)
        return visitFile(visitor, stop);
    std::vector<std::byte> kept(m_rows.size() * rowBytes);
    auto done = visitFile(
        [&](const RawRows &raw) {
            for (std::size_t r = 0; r < raw.rows; ++r)
                std::memcpy(kept.data() + (raw.firstIndex + r) * rowBytes, raw.data + r * raw.strideBytes, rowBytes);
            visitor(raw);
        },
        stop);
    if (done)
        m_kept = std::move(kept);
    return done;
}

Expected<void> CountedRows::visitFile(const std::function<void(const RawRows &)> &visitor, std::stop_token stop) const
{
    std::size_t next = 0;
    Expected<void> done;
    if (m_raw) {
        done = m_dump.visitRawBlocks(
            m_edge,
            [&](std::uint64_t begin, std::uint64_t rows, std::span<const std::byte> bytes) {
                visitBlock(begin, rows, bytes.data(), next, visitor);
                return next < m_rows.size() && !stop.stop_requested();
            },
            stop);
    } else {
        done = m_dump.visitBlocks(
            m_edge,
            [&](const Block &block) {
                visitBlock(block.begin, block.values.rows(), reinterpret_cast<const std::byte *>(block.values.data()), next,
                           visitor);
                return next < m_rows.size() && !stop.stop_requested();
            },
            stop);
    }
    if (!done)
        return done;
    if (stop.stop_requested())
        return cancelled(m_edge.id.value);
    if (next < m_rows.size())
        return dataError(m_edge.id.value, "row " + std::to_string(m_rows[next]) + " could not be read",
                         "rows below " + std::to_string(m_edge.rows));
    return {};
}

void CountedRows::visitBlock(std::uint64_t begin, std::uint64_t rows, const std::byte *data, std::size_t &next,
                             const std::function<void(const RawRows &)> &visitor) const
{
    const std::size_t rowBytes = channels() * byteSize(m_kind);
    const auto first = static_cast<std::int64_t>(begin), end = static_cast<std::int64_t>(begin + rows);
    while (next < m_rows.size() && m_rows[next] < end) {
        std::size_t last = next + 1;
        while (last < m_rows.size() && m_rows[last] < end && m_rows[last] == m_rows[last - 1] + 1)
            ++last;
        visitor({m_kind, data + static_cast<std::size_t>(m_rows[next] - first) * rowBytes, last - next, rowBytes, next});
        next = last;
    }
}

} // namespace planish
