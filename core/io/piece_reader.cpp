#include "core/io/piece_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/io/number_decode.h"
#include "core/io/printable.h"

namespace planish {

namespace {

using Role = AxisUse::Role;

/// What a step along one axis of a piece means: rows or columns to go on.
struct Strides {
    std::vector<std::uint64_t> row, column;
};

Strides stridesOf(const DataPiece &piece)
{
    const std::size_t rank = piece.axes.size();
    Strides strides{std::vector<std::uint64_t>(rank, 0), std::vector<std::uint64_t>(rank, 0)};
    std::uint64_t rows = 1;
    std::uint64_t columns = 1;
    for (std::size_t axis = rank; axis-- > 0;) {
        if (piece.axes[axis].role == Role::Row) {
            strides.row[axis] = rows;
            rows *= piece.dataset.shape[axis];
        } else if (piece.axes[axis].role == Role::Channel) {
            strides.column[axis] = columns;
            columns *= piece.dataset.shape[axis];
        }
    }
    return strides;
}

/// One box of a piece and the matrix row its first element belongs to.
struct PlacedBox {
    std::vector<std::uint64_t> start, count;
    std::uint64_t firstRow = 0;
};

class PieceReader {
public:
    PieceReader(BlockSource &source, const DataPiece &piece, const DatasetInfo &matrix, std::uint64_t begin,
                std::span<std::byte> out)
        : m_source(source), m_piece(piece), m_matrix(matrix), m_begin(begin), m_out(out), m_strides(stridesOf(piece))
    {
        for (std::size_t axis = 0; axis < piece.axes.size(); ++axis)
            if (piece.axes[axis].role == Role::Row)
                m_rowAxes.push_back(axis);
        m_box.start.assign(piece.axes.size(), 0);
        m_box.count = piece.dataset.shape;
        for (std::size_t axis = 0; axis < piece.axes.size(); ++axis) {
            if (piece.axes[axis].role != Role::Fixed)
                continue;
            m_box.start[axis] = piece.axes[axis].index;
            m_box.count[axis] = 1;
        }
        // Of a single channel axis only the wanted columns are read.
        const auto isChannel = [](const AxisUse &use) { return use.role == Role::Channel; };
        if (std::count_if(piece.axes.begin(), piece.axes.end(), isChannel) == 1) {
            const auto axis =
                static_cast<std::size_t>(std::find_if(piece.axes.begin(), piece.axes.end(), isChannel) - piece.axes.begin());
            m_box.start[axis] = piece.firstColumn;
            m_box.count[axis] = matrix.shape[1];
        }
    }

    /// Rows [begin, end) of the piece, split into boxes: whole inner axes together, what is left at both ends on its own.
    Expected<void> read(std::size_t level, std::uint64_t begin, std::uint64_t end, std::uint64_t rowsBefore)
    {
        if (m_rowAxes.empty())
            return readBox(rowsBefore);
        const std::size_t axis = m_rowAxes[level];
        const std::uint64_t inner = m_strides.row[axis];
        while (begin < end) {
            const std::uint64_t index = begin / inner;
            const std::uint64_t within = begin % inner;
            const bool whole = within == 0 && end - begin >= inner;
            const std::uint64_t taken = whole ? (end - begin) / inner * inner : std::min(inner - within, end - begin);
            m_box.start[axis] = index;
            m_box.count[axis] = whole ? taken / inner : 1;
            Expected<void> done =
                whole ? readBox(rowsBefore + index * inner) : read(level + 1, within, within + taken, rowsBefore + index * inner);
            if (!done)
                return done;
            for (std::size_t deeper = level + 1; deeper < m_rowAxes.size(); ++deeper) {
                m_box.start[m_rowAxes[deeper]] = 0;
                m_box.count[m_rowAxes[deeper]] = m_piece.dataset.shape[m_rowAxes[deeper]];
            }
            begin += taken;
        }
        return {};
    }

private:
    Expected<void> readBox(std::uint64_t firstRow)
    {
        std::size_t elements = 1;
        for (const std::uint64_t count : m_box.count)
            elements *= static_cast<std::size_t>(count);
        const std::size_t stored = m_piece.dataset.elementBytes;
        m_bytes.resize(elements * stored);
        if (Expected<void> read = m_source.readBox(m_piece.dataset, m_box.start, m_box.count, m_bytes); !read)
            return read;
        if (m_piece.packed || m_piece.missing)
            unpack(elements);
        else if (m_piece.dataset.order == ByteOrder::Big)
            swapBytes(m_bytes, stored);
        scatter(firstRow);
        return {};
    }

    void unpack(std::size_t elements)
    {
        std::vector<double> values(elements);
        widen(m_bytes, m_piece.dataset.type, m_piece.dataset.order, std::span<double>(values));
        for (double &value : values)
            value = m_piece.missing && value == *m_piece.missing ? std::numeric_limits<double>::quiet_NaN()
                                                                 : value * m_piece.scale + m_piece.offset;
        m_bytes.resize(elements * m_matrix.elementBytes);
        narrow(std::span<const double>(values), m_matrix.type, m_bytes);
    }

    /// Puts the box into its rows and columns, run by run along the last axis.
    void scatter(std::uint64_t firstRow)
    {
        const std::size_t last = m_box.count.size() - 1;
        const std::size_t length = static_cast<std::size_t>(m_box.count[last]);
        std::vector<std::uint64_t> at(m_box.count.size(), 0);
        for (std::size_t from = 0;; from += length) {
            std::uint64_t row = firstRow - m_begin;
            std::uint64_t column = m_box.start[last] * m_strides.column[last];
            for (std::size_t axis = 0; axis < last; ++axis) {
                row += at[axis] * m_strides.row[axis];
                column += (m_box.start[axis] + at[axis]) * m_strides.column[axis];
            }
            putRun(from, length, row, column);
            std::size_t axis = last;
            while (axis > 0 && ++at[axis - 1] >= m_box.count[axis - 1]) {
                at[axis - 1] = 0;
                --axis;
            }
            if (axis == 0)
                return;
        }
    }

    void putRun(std::size_t from, std::size_t length, std::uint64_t row, std::uint64_t column)
    {
        const std::size_t size = m_matrix.elementBytes;
        const std::size_t last = m_box.count.size() - 1;
        const std::uint64_t channels = m_matrix.shape[1];
        const std::uint64_t first = m_piece.firstColumn;
        if (m_strides.column[last] == 1) {
            const std::uint64_t low = std::max(column, first);
            const std::uint64_t high = std::min(column + length, first + channels);
            if (low < high)
                std::memcpy(m_out.data() + (row * channels + low - first) * size, m_bytes.data() + (from + (low - column)) * size,
                            (high - low) * size);
            return;
        }
        for (std::size_t i = 0; i < length; ++i) {
            const std::uint64_t r = row + i * m_strides.row[last];
            const std::uint64_t c = column + i * m_strides.column[last];
            if (c >= first && c < first + channels)
                std::memcpy(m_out.data() + (r * channels + c - first) * size, m_bytes.data() + (from + i) * size, size);
        }
    }

    BlockSource &m_source;
    const DataPiece &m_piece;
    const DatasetInfo &m_matrix;
    std::uint64_t m_begin;
    std::span<std::byte> m_out;
    Strides m_strides;
    std::vector<std::size_t> m_rowAxes;
    PlacedBox m_box;
    std::vector<std::byte> m_bytes;
};

std::uint64_t productOf(const DataPiece &piece, Role role)
{
    std::uint64_t product = 1;
    for (std::size_t axis = 0; axis < piece.axes.size(); ++axis)
        if (piece.axes[axis].role == role)
            product *= piece.dataset.shape[axis];
    return product;
}

/// Rows of one row of chunks, so that blocks end where chunks end.
std::uint64_t chunkRowsOf(const DataPiece &piece)
{
    std::uint64_t rows = 1;
    for (std::size_t axis = 0; axis < piece.axes.size() && !piece.dataset.chunk.empty(); ++axis)
        if (piece.axes[axis].role == Role::Row)
            rows *= std::min(piece.dataset.chunk[axis], piece.dataset.shape[axis]);
    return rows;
}

} // namespace

std::uint64_t DataPiece::rows() const
{
    return productOf(*this, Role::Row);
}

std::uint64_t DataPiece::columns() const
{
    return productOf(*this, Role::Channel);
}

Expected<void> readMatrixRows(BlockSource &source, const EdgeData &data, std::uint64_t begin, std::uint64_t end,
                              std::span<std::byte> out)
{
    if (data.pieces.empty())
        return source.readRows(data.dataset, begin, end, out);
    const std::uint64_t rowBytes = data.dataset.shape[1] * data.dataset.elementBytes;
    std::uint64_t before = 0;
    for (const DataPiece &piece : data.pieces) {
        const std::uint64_t rows = piece.rows();
        const std::uint64_t low = std::max(begin, before);
        const std::uint64_t high = std::min(end, before + rows);
        if (low < high) {
            const std::span<std::byte> part = out.subspan(static_cast<std::size_t>((low - begin) * rowBytes),
                                                          static_cast<std::size_t>((high - low) * rowBytes));
            PieceReader reader(source, piece, data.dataset, low - before, part);
            if (Expected<void> read = reader.read(0, low - before, high - before, 0); !read)
                return read;
        }
        before += rows;
    }
    return {};
}

Expected<EdgeData> joinPieces(std::vector<DataPiece> pieces, std::uint64_t channels)
{
    EdgeData data;
    std::uint64_t rows = 0;
    for (const DataPiece &piece : pieces) {
        const DatasetInfo &first = pieces.front().dataset;
        if (piece.dataset.type != first.type || piece.packed != pieces.front().packed)
            return dataError(printable(piece.dataset.path), "holds " + std::string(nameOf(piece.dataset.type)),
                             std::string(nameOf(first.type)) + " as in " + printable(first.path));
        if (piece.firstColumn + channels > piece.columns())
            return dataError(printable(piece.dataset.path), "has " + std::to_string(piece.columns()) + " channels",
                             std::to_string(channels) + " as in " + printable(first.path));
        rows += piece.rows();
    }
    data.dataset = pieces.front().dataset;
    data.dataset.shape = {rows, channels};
    data.dataset.chunk = {chunkRowsOf(pieces.front()), channels};
    data.dataset.order = ByteOrder::Little;
    data.dataset.offset = -1;
    if (pieces.front().packed) {
        data.dataset.type = StoredType::F64;
        data.dataset.elementBytes = sizeof(double);
    }
    data.pieces = std::move(pieces);
    return data;
}

} // namespace planish
