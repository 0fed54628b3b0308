#include "core/io/layout_dump.h"

#include <algorithm>
#include <future>
#include <mutex>
#include <numeric>

#include "core/io/raw_file.h"
#include "core/io/layouts/layout_table.h"
#include "core/io/layouts/stated.h"
#include "core/io/number_decode.h"
#include "core/io/piece_reader.h"
#include "core/io/printable.h"

namespace planish {

namespace {

constexpr std::uint64_t kBlockBytes = std::uint64_t{32} << 20;
constexpr std::uint64_t kLargestRow = std::uint64_t{256} << 20;
constexpr std::uint64_t kLargestTensor = std::uint64_t{1} << 34;

class LayoutDump final : public Dump {
public:
    LayoutDump(LayoutResult result, std::unique_ptr<BlockSource> source)
        : m_result(std::move(result)), m_source(std::move(source))
    {
    }

    const DumpInfo &info() const override { return m_result.info; }
    Expected<MatrixD> readRows(const DumpEdge &edge, std::span<const std::int64_t> rows) const override;
    Expected<void> visitBlocks(const DumpEdge &edge, const std::function<bool(const Block &)> &visit,
                               std::stop_token stop) const override;
    Expected<void> visitRawBlocks(const DumpEdge &edge,
                                  const std::function<bool(std::uint64_t, std::uint64_t, std::span<const std::byte>)> &visit,
                                  std::stop_token stop) const override;
    RowReader rowReader(const DumpEdge &edge) const override;
    Expected<MatrixD> readTensor(const TensorEntry &tensor) const override;

private:
    Expected<MatrixD> readArranged(const EdgeData &data, const TensorEntry &tensor) const;
    std::string subject(const std::string &path) const { return m_result.info.file + ":" + printable(path); }
    Expected<const EdgeData *> dataOf(const DumpEdge &edge) const;
    Expected<void> readBytes(const EdgeData &data, std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) const;
    Expected<void> visitStored(const DumpEdge &edge, std::uint64_t bytesOfRow,
                               const std::function<bool(std::uint64_t, std::uint64_t, std::span<std::byte>)> &visit,
                               std::stop_token stop) const;

    LayoutResult m_result;
    std::unique_ptr<BlockSource> m_source;
    mutable std::mutex m_mutex; ///< one reader at a time
};

std::uint64_t rowBytesOf(const DumpEdge &edge, const DatasetInfo &dataset)
{
    return edge.channels * dataset.elementBytes;
}

/// Rows of one block: about 32 MiB, whole rows of chunks where that is possible, so that no chunk is decoded twice.
std::uint64_t rowsOfBlock(const DatasetInfo &dataset, std::uint64_t bytesOfRow)
{
    const std::uint64_t rows = std::max<std::uint64_t>(1, kBlockBytes / std::max<std::uint64_t>(bytesOfRow, 1));
    const std::uint64_t chunkRows = dataset.chunk.empty() ? 1 : dataset.chunk[0];
    if (chunkRows <= rows)
        return rows / chunkRows * chunkRows;
    return chunkRows * bytesOfRow <= 4 * kBlockBytes ? chunkRows : rows;
}

/// Indices of `rows` in ascending order of the row they ask for.
std::vector<std::size_t> ascending(std::span<const std::int64_t> rows)
{
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (!std::is_sorted(rows.begin(), rows.end()))
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rows[a] < rows[b]; });
    return order;
}

/// How many of the ordered rows one read should cover: neighbours, and all that share a row of chunks, within a block.
std::size_t runLength(std::span<const std::int64_t> rows, std::span<const std::size_t> order, std::uint64_t chunkRows,
                      std::uint64_t mostRows)
{
    const auto first = static_cast<std::uint64_t>(rows[order[0]]);
    std::size_t length = 1;
    for (; length < order.size(); ++length) {
        const auto previous = static_cast<std::uint64_t>(rows[order[length - 1]]);
        const auto next = static_cast<std::uint64_t>(rows[order[length]]);
        const bool near = next <= previous + 1 || next / chunkRows == previous / chunkRows;
        if (!near || next - first >= mostRows)
            break;
    }
    return length;
}

Expected<const EdgeData *> LayoutDump::dataOf(const DumpEdge &edge) const
{
    const auto found = m_result.edges.find(edge.id.value);
    if (found == m_result.edges.end())
        return dataError(m_result.info.file, "has no edge " + printable(edge.id.value), "an edge of this file");
    const DatasetInfo &dataset = found->second.dataset;
    if (rowBytesOf(edge, dataset) > kLargestRow)
        return dataError(subject(edge.path), "one row has " + std::to_string(rowBytesOf(edge, dataset)) + " bytes",
                         "rows of at most " + std::to_string(kLargestRow));
    return &found->second;
}

Expected<void> LayoutDump::readBytes(const EdgeData &data, std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) const
{
    const std::lock_guard lock(m_mutex);
    return readMatrixRows(*m_source, data, begin, end, out);
}

Expected<MatrixD> LayoutDump::readRows(const DumpEdge &edge, std::span<const std::int64_t> rows) const
{
    const Expected<const EdgeData *> found = dataOf(edge);
    if (!found)
        return tl::make_unexpected(found.error());
    const DatasetInfo &dataset = (*found)->dataset;
    for (const std::int64_t row : rows)
        if (row < 0 || static_cast<std::uint64_t>(row) >= edge.rows)
            return dataError(subject(edge.path), "has no row " + std::to_string(row),
                             "rows 0 to " + std::to_string(edge.rows - 1));
    const std::uint64_t rowBytes = rowBytesOf(edge, dataset);
    const std::uint64_t chunkRows = dataset.chunk.empty() ? 1 : dataset.chunk[0];
    const std::uint64_t mostRows = rowsOfBlock(dataset, rowBytes);
    const std::vector<std::size_t> order = ascending(rows);
    MatrixD values(rows.size(), static_cast<std::size_t>(edge.channels));
    std::vector<std::byte> bytes;
    for (std::size_t at = 0; at < order.size();) {
        const std::span<const std::size_t> rest = std::span(order).subspan(at);
        const std::size_t count = runLength(rows, rest, chunkRows, mostRows);
        const auto begin = static_cast<std::uint64_t>(rows[rest[0]]);
        const auto end = static_cast<std::uint64_t>(rows[rest[count - 1]]) + 1;
        bytes.resize(static_cast<std::size_t>((end - begin) * rowBytes));
        if (Expected<void> read = readBytes(**found, begin, end, bytes); !read)
            return tl::make_unexpected(read.error());
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t from = (static_cast<std::uint64_t>(rows[rest[i]]) - begin) * rowBytes;
            const auto stored =
                std::span<const std::byte>(bytes).subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(rowBytes));
            widen(stored, dataset.type, dataset.order, values.row(rest[i]));
        }
        at += count;
    }
    return values;
}

/// Reads one block ahead while the visitor works on the current one; two buffers in all.
Expected<void> LayoutDump::visitStored(const DumpEdge &edge, std::uint64_t bytesOfRow,
                                       const std::function<bool(std::uint64_t, std::uint64_t, std::span<std::byte>)> &visit,
                                       std::stop_token stop) const
{
    const Expected<const EdgeData *> found = dataOf(edge);
    if (!found)
        return tl::make_unexpected(found.error());
    const DatasetInfo &dataset = (*found)->dataset;
    const std::uint64_t rowBytes = rowBytesOf(edge, dataset);
    const std::uint64_t step = std::min(rowsOfBlock(dataset, bytesOfRow), edge.rows);
    std::vector<std::byte> current;
    std::vector<std::byte> ahead;
    const auto load = [&](std::uint64_t begin, std::vector<std::byte> &buffer) {
        const std::uint64_t end = std::min(edge.rows, begin + step);
        buffer.resize(static_cast<std::size_t>((end - begin) * rowBytes));
        return readBytes(**found, begin, end, buffer);
    };
    Expected<void> read = edge.rows > 0 ? load(0, current) : Expected<void>();
    for (std::uint64_t begin = 0; begin < edge.rows; begin += step) {
        if (!read)
            return read;
        if (stop.stop_requested())
            return cancelled(edge.id.value);
        const bool more = begin + step < edge.rows;
        std::future<Expected<void>> next;
        if (more)
            next = std::async(std::launch::async, [&load, &ahead, at = begin + step] { return load(at, ahead); });
        const bool goOn = visit(begin, std::min(step, edge.rows - begin), current);
        if (more)
            read = next.get();
        if (!goOn)
            return {};
        std::swap(current, ahead);
    }
    return {};
}

Expected<void> LayoutDump::visitBlocks(const DumpEdge &edge, const std::function<bool(const Block &)> &visit,
                                       std::stop_token stop) const
{
    const Expected<const EdgeData *> data = dataOf(edge);
    if (!data)
        return tl::make_unexpected(data.error());
    Block block;
    const auto widenAndVisit = [&](std::uint64_t begin, std::uint64_t rows, std::span<std::byte> bytes) {
        if (block.values.rows() != rows)
            block.values = MatrixD(static_cast<std::size_t>(rows), static_cast<std::size_t>(edge.channels));
        block.begin = begin;
        widen(bytes, (*data)->dataset.type, (*data)->dataset.order, block.values.values());
        return visit(block);
    };
    return visitStored(edge, edge.channels * sizeof(double), widenAndVisit, std::move(stop));
}

Expected<void>
LayoutDump::visitRawBlocks(const DumpEdge &edge,
                           const std::function<bool(std::uint64_t, std::uint64_t, std::span<const std::byte>)> &visit,
                           std::stop_token stop) const
{
    const Expected<const EdgeData *> data = dataOf(edge);
    if (!data)
        return tl::make_unexpected(data.error());
    const bool swap = (*data)->dataset.order == ByteOrder::Big;
    const auto visitNative = [&](std::uint64_t begin, std::uint64_t rows, std::span<std::byte> bytes) {
        if (swap)
            swapBytes(bytes, (*data)->dataset.elementBytes);
        return visit(begin, rows, bytes);
    };
    return visitStored(edge, rowBytesOf(edge, (*data)->dataset), visitNative, std::move(stop));
}

RowReader LayoutDump::rowReader(const DumpEdge &edge) const
{
    const Expected<const EdgeData *> data = dataOf(edge);
    if (!data || !(*data)->pieces.empty() || (*data)->dataset.order == ByteOrder::Big || (*data)->dataset.shape.size() < 2)
        return {};
    const std::lock_guard lock(m_mutex);
    const std::optional<StoredRun> run = m_source->storedRun((*data)->dataset);
    if (!run)
        return {};
    return [file = run->file, offset = run->offset, rowBytes = rowBytesOf(edge, (*data)->dataset)](
               std::uint64_t first, std::uint64_t, std::span<std::byte> out) { return file->read(offset + first * rowBytes, out); };
}

/// [outputs, channels] of stored numbers: trailing axes are one, vectors become one row.
MatrixD oriented(const MatrixD &stored, const TensorEntry &tensor)
{
    MatrixD full = stored;
    if (tensor.transposed) {
        full = MatrixD(stored.cols(), stored.rows());
        for (std::size_t r = 0; r < stored.rows(); ++r)
            for (std::size_t c = 0; c < stored.cols(); ++c)
                full(c, r) = stored(r, c);
    }
    const auto begin = static_cast<std::size_t>(std::max<std::int64_t>(tensor.rowBegin, 0));
    const std::size_t end = tensor.rowEnd < 0 ? full.rows() : std::min(static_cast<std::size_t>(tensor.rowEnd), full.rows());
    if (begin == 0 && end == full.rows())
        return full;
    MatrixD part(end > begin ? end - begin : 0, full.cols());
    for (std::size_t r = 0; r < part.rows(); ++r)
        std::copy_n(full.row(begin + r).begin(), full.cols(), part.row(r).begin());
    return part;
}

Expected<MatrixD> LayoutDump::readArranged(const EdgeData &data, const TensorEntry &tensor) const
{
    std::uint64_t count = 0;
    if (!productFits(data.dataset.shape, kLargestTensor, &count))
        return dataError(subject(tensor.path), "has shape " + shapeText(data.dataset.shape), "at most 2^34 numbers in a tensor");
    MatrixD matrix(static_cast<std::size_t>(data.dataset.shape[0]), static_cast<std::size_t>(data.dataset.shape[1]));
    std::vector<std::byte> bytes(static_cast<std::size_t>(count) * data.dataset.elementBytes);
    if (Expected<void> read = readBytes(data, 0, data.dataset.shape[0], bytes); !read)
        return tl::make_unexpected(read.error());
    widen(bytes, data.dataset.type, data.dataset.order, matrix.values());
    return oriented(matrix, tensor);
}

Expected<MatrixD> LayoutDump::readTensor(const TensorEntry &tensor) const
{
    if (const auto arranged = m_result.arranged.find(tensor.path); arranged != m_result.arranged.end())
        return readArranged(arranged->second, tensor);
    const auto found = m_result.tensors.find(tensor.path);
    if (found == m_result.tensors.end())
        return dataError(m_result.info.file, "has no tensor " + printable(tensor.path), "a tensor of this file");
    const DatasetInfo &dataset = found->second;
    std::uint64_t count = 0;
    if (!productFits(dataset.shape, kLargestTensor, &count))
        return dataError(subject(tensor.path), "has shape " + shapeText(dataset.shape), "at most 2^34 numbers in a tensor");
    const bool vector = dataset.shape.size() < 2;
    const std::uint64_t rows = vector ? 1 : dataset.shape[0];
    const std::uint64_t readRows = dataset.shape.empty() ? 1 : dataset.shape[0];
    MatrixD stored(static_cast<std::size_t>(rows), static_cast<std::size_t>(count / std::max<std::uint64_t>(rows, 1)));
    std::vector<std::byte> bytes(static_cast<std::size_t>(count) * byteSize(dataset.type));
    if (Expected<void> read = readBytes(EdgeData{dataset, {}}, 0, readRows, bytes); !read)
        return tl::make_unexpected(read.error());
    widen(bytes, dataset.type, dataset.order, stored.values());
    return oriented(stored, tensor);
}

void finish(const FileStructure &structure, LayoutMatch match, std::string_view key, DumpInfo &info)
{
    info.file = structure.file;
    info.format = structure.format;
    info.layout = key;
    info.reason = std::move(match.reason);
    info.confidence = match.confidence;
}

} // namespace

Expected<std::shared_ptr<const Dump>> openLayoutDump(const FileStructure &structure, std::unique_ptr<BlockSource> source,
                                                     const std::string &layoutFile)
{
    const Expected<RecognisedLayout> recognised = recogniseLayout(structure);
    if (!layoutFile.empty() && recognised && recognised->match.confidence == 1.0)
        return usageError(layoutFile, "the layout '" + std::string(recognised->layout->key) + "' states its own axes",
                          "no --layout for this file");
    if (!layoutFile.empty()) {
        Expected<LayoutResult> stated = readStatedLayout(structure, *source, layoutFile);
        if (!stated)
            return tl::make_unexpected(stated.error());
        finish(structure, {1.0, "axes stated in " + layoutFile}, "stated", stated->info);
        return std::shared_ptr<const Dump>(std::make_shared<LayoutDump>(std::move(*stated), std::move(source)));
    }
    if (!recognised)
        return tl::make_unexpected(recognised.error());
    Expected<LayoutResult> result = recognised->layout->read(structure, *source);
    if (!result)
        return tl::make_unexpected(result.error());
    finish(structure, recognised->match, recognised->layout->key, result->info);
    return std::shared_ptr<const Dump>(std::make_shared<LayoutDump>(std::move(*result), std::move(source)));
}

} // namespace planish
