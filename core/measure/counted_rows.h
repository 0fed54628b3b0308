// The counted rows of one edge as stored bytes, visited in file order as often as a measure needs (medians, channel counts).
// Small edges are kept after the first visit; large ones are read again, so memory does not grow with the file.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "core/io/dump.h"
#include "kernels/statistics.h"

namespace planish
{

/// Consecutive counted rows, borrowed for the duration of the call.
struct RawRows {
    StoredKind kind = StoredKind::F16;
    const std::byte *data = nullptr;
    std::size_t rows = 0, strideBytes = 0;
    std::size_t firstIndex = 0; ///< index of the first row among the counted rows
};

/// One thread at a time. `dump` and `edge` must outlive it.
class CountedRows
{
public:
    CountedRows(const Dump &dump, const DumpEdge &edge, std::vector<std::int64_t> fileRows);

    const std::vector<std::int64_t> &fileRows() const { return m_rows; } ///< ascending
    std::size_t size() const { return m_rows.size(); }
    const DumpEdge &edge() const { return m_edge; }
    std::size_t channels() const { return static_cast<std::size_t>(m_edge.channels); }
    /// Types the statistics kernel does not know are widened to double by the dump.
    StoredKind kind() const { return m_kind; }

    /// Reads of whole rows from any thread, when the file allows them and the kernel knows the type; else empty.
    RowReader reader() const { return m_raw ? m_dump.rowReader(m_edge) : RowReader{}; }

    /// Errors of the dump, or cancelled.
    Expected<void> visit(const std::function<void(const RawRows &)> &visitor, std::stop_token stop) const;

private:
    Expected<void> visitFile(const std::function<void(const RawRows &)> &visitor, std::stop_token stop) const;
    void visitBlock(std::uint64_t begin, std::uint64_t rows, const std::byte *data, std::size_t &next,
                    const std::function<void(const RawRows &)> &visitor) const;

    const Dump &m_dump;
    const DumpEdge &m_edge;
    std::vector<std::int64_t> m_rows;
    StoredKind m_kind = StoredKind::F64;
    bool m_raw = true;
    mutable std::vector<std::byte> m_kept; ///< all counted rows, compact, once visited and small enough
};

} // namespace planish
