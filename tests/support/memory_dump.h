// A dump in memory for tests: edges from rows of numbers, stored as any type the writers know, handed out in small blocks.
#pragma once

#include <cstring>
#include <functional>
#include <stdexcept>

#include "core/io/dump.h"
#include "core/io/number_decode.h"

namespace planish::test {

class MemoryDump : public Dump {
public:
    /// Rows a block; small, so that tests cross block borders.
    explicit MemoryDump(std::size_t blockRows = 7) : m_blockRows(blockRows) { m_info.file = "memory"; }

    /// Adds an edge [rows, K]; values are narrowed to `type`. Rows that no token table covers become its rows.
    DumpEdge &add(const std::string &id, const MatrixD &values, StoredType type, const std::string &site = "other",
                  std::int64_t layer = 0)
    {
        DumpEdge edge;
        edge.id = {id};
        edge.site = site;
        edge.layer = layer;
        edge.storedType = type;
        edge.rows = values.rows();
        edge.channels = values.cols();
        std::vector<std::byte> bytes(values.size() * byteSize(type));
        narrow(values.values(), type, bytes);
        m_info.edges.push_back(edge);
        m_bytes.push_back(std::move(bytes));
        while (m_info.tokens.request.size() < values.rows())
            addToken(0, 0, 1);
        return m_info.edges.back();
    }
    void addToken(std::int32_t request, std::uint8_t phase, std::uint8_t mask)
    {
        TokenTable &t = m_info.tokens;
        t.position.push_back(t.request.empty() || t.request.back() != request ? 0 : t.position.back() + 1);
        t.request.push_back(request);
        t.phase.push_back(phase);
        t.mask.push_back(mask);
        t.id.push_back(-1);
        t.hasRequest = t.hasPhase = t.hasMask = t.hasPosition = true;
    }
    void setRequests(const std::vector<std::int32_t> &requests)
    {
        m_info.tokens = {};
        for (std::int32_t request : requests)
            addToken(request, 0, 1);
    }
    DumpInfo &editInfo() { return m_info; }
    int visits() const { return m_visits; } ///< how often an edge was read through

    const DumpInfo &info() const override { return m_info; }
    Expected<MatrixD> readRows(const DumpEdge &edge, std::span<const std::int64_t> rows) const override
    {
        MatrixD out(rows.size(), edge.channels);
        for (std::size_t r = 0; r < rows.size(); ++r)
            widenRow(edge, static_cast<std::size_t>(rows[r]), out.row(r));
        return out;
    }
    Expected<void> visitBlocks(const DumpEdge &edge, const std::function<bool(const Block &)> &visit,
                               std::stop_token stop) const override
    {
        ++m_visits;
        for (std::size_t begin = 0; begin < edge.rows && !stop.stop_requested(); begin += m_blockRows) {
            Block block{begin, MatrixD(std::min<std::size_t>(m_blockRows, edge.rows - begin), edge.channels)};
            for (std::size_t r = 0; r < block.values.rows(); ++r)
                widenRow(edge, begin + r, block.values.row(r));
            if (!visit(block))
                break;
        }
        return {};
    }
    Expected<void> visitRawBlocks(const DumpEdge &edge,
                                  const std::function<bool(std::uint64_t, std::uint64_t, std::span<const std::byte>)> &visit,
                                  std::stop_token stop) const override
    {
        ++m_visits;
        const std::size_t rowBytes = edge.channels * byteSize(edge.storedType);
        for (std::size_t begin = 0; begin < edge.rows && !stop.stop_requested(); begin += m_blockRows) {
            const std::size_t rows = std::min<std::size_t>(m_blockRows, edge.rows - begin);
            if (!visit(begin, rows, std::span(bytesOf(edge)).subspan(begin * rowBytes, rows * rowBytes)))
                break;
        }
        return {};
    }
    /// A weight [N, K] under a dump name.
    void addWeight(const std::string &name, const MatrixD &values)
    {
        TensorEntry entry;
        entry.name = {name};
        entry.path = "/weights/" + name;
        entry.file = m_info.file;
        entry.shape = {values.rows(), values.cols()};
        entry.storedType = StoredType::F64;
        m_info.weights.push_back(entry);
        m_weights.push_back(values);
    }
    Expected<MatrixD> readTensor(const TensorEntry &tensor) const override
    {
        for (std::size_t w = 0; w < m_weights.size(); ++w)
            if (m_info.weights[w].name == tensor.name)
                return m_weights[w];
        return dataError(tensor.name.value, "there is no such tensor", "one that was added");
    }

private:
    const std::vector<std::byte> &bytesOf(const DumpEdge &edge) const
    {
        for (std::size_t e = 0; e < m_info.edges.size(); ++e)
            if (m_info.edges[e].id == edge.id)
                return m_bytes[e];
        throw std::logic_error("no edge " + edge.id.value);
    }
    void widenRow(const DumpEdge &edge, std::size_t row, std::span<double> out) const
    {
        const std::size_t rowBytes = edge.channels * byteSize(edge.storedType);
        widen(std::span(bytesOf(edge)).subspan(row * rowBytes, rowBytes), edge.storedType, ByteOrder::Little, out);
    }

    DumpInfo m_info;
    std::vector<std::vector<std::byte>> m_bytes;
    std::vector<MatrixD> m_weights;
    std::size_t m_blockRows;
    mutable int m_visits = 0;
};

/// Values from a plain recurrence (no library generator), roughly in (-1, 1) with a few large ones.
inline MatrixD wavyMatrix(std::size_t rows, std::size_t cols, std::uint64_t seed = 1)
{
    MatrixD out(rows, cols);
    std::uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
    for (double &x : out.values()) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        x = static_cast<double>(static_cast<std::int64_t>(state >> 11)) / 4503599627370496.0 - 1.0;
        if ((state >> 7) % 97 == 0)
            x *= 40.0;
    }
    return out;
}

inline MatrixD matrixOf(std::initializer_list<std::initializer_list<double>> rows)
{
    MatrixD out(rows.size(), rows.begin()->size());
    std::size_t r = 0;
    for (const auto &row : rows)
        std::copy(row.begin(), row.end(), out.row(r++).begin());
    return out;
}

} // namespace planish::test
