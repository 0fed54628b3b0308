#include "core/geometry/max_image.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace planish {

namespace {

// 16 Mi cells are 64 MiB of base and a third more of coarser levels.
constexpr std::uint64_t kBaseCells = 16u << 20;
// A finer window is read from the file when it is at most this many elements (64 MiB as double).
constexpr std::uint64_t kReadElements = 8u << 20;

std::uint64_t cellsAt(std::uint64_t size, int level)
{
    return (size + (std::uint64_t{1} << level) - 1) >> level;
}

// Larger magnitude wins, the positive one on a tie, so that the picture does not depend on the order of reduction.
void keepLarger(float &cell, float value)
{
    const float a = std::abs(value), b = std::abs(cell);
    if (a > b || (a == b && value > cell))
        cell = value;
}

float pictured(double value)
{
    constexpr double most = std::numeric_limits<float>::max();
    return static_cast<float>(std::clamp(value, -most, most));
}

// Smallest level whose cells over [begin, end) fit in `most`.
int levelFor(std::uint64_t begin, std::uint64_t end, std::size_t most)
{
    int level = 0;
    while (level < 63 && cellsAt(end, level) - (begin >> level) > most)
        ++level;
    return level;
}

MaxImageRequest clamped(const MaxImageRequest &request, std::uint64_t rows, std::uint64_t channels)
{
    MaxImageRequest inside = request;
    inside.rowEnd = std::min(request.rowEnd, rows);
    inside.rowBegin = std::min(request.rowBegin, inside.rowEnd);
    inside.channelEnd = std::min(request.channelEnd, channels);
    inside.channelBegin = std::min(request.channelBegin, inside.channelEnd);
    inside.maxRows = std::max<std::size_t>(1, request.maxRows);
    inside.maxCols = std::max<std::size_t>(1, request.maxCols);
    return inside;
}

bool isEmpty(const MaxImageRequest &request)
{
    return request.rowBegin >= request.rowEnd || request.channelBegin >= request.channelEnd;
}

// An image of cells of 2^rowLevel x 2^colLevel elements over the window.
MaxImage imageFor(const MaxImageRequest &request, int rowLevel, int colLevel, std::uint64_t rows, std::uint64_t channels)
{
    MaxImage image;
    const std::uint64_t firstRow = request.rowBegin >> rowLevel, firstCol = request.channelBegin >> colLevel;
    image.rows = static_cast<std::size_t>(cellsAt(request.rowEnd, rowLevel) - firstRow);
    image.cols = static_cast<std::size_t>(cellsAt(request.channelEnd, colLevel) - firstCol);
    image.rowBegin = firstRow << rowLevel;
    image.channelBegin = firstCol << colLevel;
    image.rowEnd = std::min<std::uint64_t>(rows, (firstRow + image.rows) << rowLevel);
    image.channelEnd = std::min<std::uint64_t>(channels, (firstCol + image.cols) << colLevel);
    image.value.assign(image.rows * image.cols, 0.0f);
    return image;
}

} // namespace

MaxPyramid::MaxPyramid(std::uint64_t rows, std::uint64_t channels) : m_rows(rows), m_channels(channels)
{
    while (cellsAt(rows, m_base) * cellsAt(channels, m_base) > kBaseCells)
        ++m_base;
    Level base;
    base.rows = static_cast<std::size_t>(cellsAt(rows, m_base));
    base.cols = static_cast<std::size_t>(cellsAt(channels, m_base));
    base.value.assign(base.rows * base.cols, 0.0f);
    m_levels.push_back(std::move(base));
}

Expected<std::shared_ptr<const MaxPyramid>> MaxPyramid::build(const Dump &dump, const DumpEdge &edge, std::stop_token stop)
{
    if (edge.rows == 0 || edge.channels == 0)
        return dataError(edge.id.value, "there is nothing to draw", "at least one row and one channel");
    std::shared_ptr<MaxPyramid> pyramid(new MaxPyramid(edge.rows, edge.channels));
    auto done = dump.visitBlocks(
        edge,
        [&](const Block &block) {
            for (std::size_t r = 0; r < block.values.rows(); ++r)
                pyramid->addRow(block.begin + r, block.values.row(r).data());
            return !stop.stop_requested();
        },
        stop);
    if (!done)
        return tl::make_unexpected(done.error());
    if (stop.stop_requested())
        return cancelled(edge.id.value);
    pyramid->finish();
    return std::shared_ptr<const MaxPyramid>(std::move(pyramid));
}

std::shared_ptr<const MaxPyramid> MaxPyramid::fromValues(ConstViewD values)
{
    std::shared_ptr<MaxPyramid> pyramid(new MaxPyramid(values.rows, values.cols));
    for (std::size_t r = 0; r < values.rows; ++r)
        pyramid->addRow(r, values.row(r).data());
    pyramid->finish();
    return pyramid;
}

void MaxPyramid::addRow(std::uint64_t row, const double *values)
{
    if (row >= m_rows)
        return;
    Level &base = m_levels.front();
    float *cells = base.value.data() + static_cast<std::size_t>(row >> m_base) * base.cols;
    for (std::uint64_t k = 0; k < m_channels; ++k)
        if (std::isfinite(values[k]))
            keepLarger(cells[k >> m_base], pictured(values[k]));
}

void MaxPyramid::finish()
{
    while (m_levels.back().rows * m_levels.back().cols > 1) {
        const Level &fine = m_levels.back();
        Level coarse;
        coarse.rows = (fine.rows + 1) / 2;
        coarse.cols = (fine.cols + 1) / 2;
        coarse.value.assign(coarse.rows * coarse.cols, 0.0f);
        for (std::size_t r = 0; r < fine.rows; ++r)
            for (std::size_t c = 0; c < fine.cols; ++c)
                keepLarger(coarse.value[(r / 2) * coarse.cols + c / 2], fine.value[r * fine.cols + c]);
        m_levels.push_back(std::move(coarse));
    }
}

MaxImage MaxPyramid::window(const MaxImageRequest &request) const
{
    const MaxImageRequest inside = clamped(request, m_rows, m_channels);
    if (isEmpty(inside))
        return {};
    const int rowLevel = std::max(m_base, levelFor(inside.rowBegin, inside.rowEnd, inside.maxRows));
    const int colLevel = std::max(m_base, levelFor(inside.channelBegin, inside.channelEnd, inside.maxCols));
    MaxImage image = imageFor(inside, rowLevel, colLevel, m_rows, m_channels);
    // The finer of the two axes decides the level; the other one is reduced on the way, so a long narrow window keeps its detail.
    const int level = std::min({rowLevel, colLevel, m_base + static_cast<int>(m_levels.size()) - 1});
    const Level &source = m_levels[static_cast<std::size_t>(level - m_base)];
    const int rowShift = rowLevel - level, colShift = colLevel - level;
    const std::size_t firstRow = static_cast<std::size_t>(image.rowBegin >> level),
                      firstCol = static_cast<std::size_t>(image.channelBegin >> level);
    const std::size_t endRow = std::min(source.rows, firstRow + (image.rows << rowShift));
    const std::size_t endCol = std::min(source.cols, firstCol + (image.cols << colShift));
    for (std::size_t r = firstRow; r < endRow; ++r) {
        float *cells = image.value.data() + ((r - firstRow) >> rowShift) * image.cols;
        for (std::size_t c = firstCol; c < endCol; ++c)
            keepLarger(cells[(c - firstCol) >> colShift], source.value[r * source.cols + c]);
    }
    return image;
}

Expected<MaxImage> maxImage(const Dump &dump, const DumpEdge &edge, const MaxPyramid &pyramid, const MaxImageRequest &request,
                            std::stop_token stop)
{
    const MaxImageRequest inside = clamped(request, edge.rows, edge.channels);
    if (isEmpty(inside))
        return MaxImage{};
    const int rowLevel = levelFor(inside.rowBegin, inside.rowEnd, inside.maxRows);
    const int colLevel = levelFor(inside.channelBegin, inside.channelEnd, inside.maxCols);
    MaxImage image = imageFor(inside, rowLevel, colLevel, edge.rows, edge.channels);
    const std::uint64_t elements = (image.rowEnd - image.rowBegin) * edge.channels;
    if (std::min(rowLevel, colLevel) >= pyramid.baseLevel() || elements > kReadElements)
        return pyramid.window(inside);
    if (stop.stop_requested())
        return cancelled(edge.id.value);
    std::vector<std::int64_t> rows;
    for (std::uint64_t row = image.rowBegin; row < image.rowEnd; ++row)
        rows.push_back(static_cast<std::int64_t>(row));
    auto values = dump.readRows(edge, rows);
    if (!values)
        return tl::make_unexpected(values.error());
    for (std::size_t r = 0; r < rows.size(); ++r)
        for (std::uint64_t k = image.channelBegin; k < image.channelEnd; ++k)
            if (const double x = (*values)(r, k); std::isfinite(x))
                keepLarger(image.value[(r >> rowLevel) * image.cols + ((k - image.channelBegin) >> colLevel)], pictured(x));
    return image;
}

} // namespace planish
