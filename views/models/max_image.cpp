#include "views/models/max_image.h"

#include <algorithm>
#include <cmath>

namespace planish
{

namespace
{

void keepLarger(float &cell, float value)
{
    if (std::abs(value) > std::abs(cell)) {
        cell = value;
    }
}

/// Cell of `index` when `extent` entries are spread over `cells`.
std::size_t cellOf(std::uint64_t index, std::uint64_t extent, std::size_t cells)
{
    return static_cast<std::size_t>(index * cells / extent);
}

} // namespace

Expected<MaxImage> loadMaxImage(const Dump &dump, const DumpEdge &edge, const ImageRegion &region, std::size_t maxRows,
                                std::size_t maxCols, std::stop_token stop)
{
    const ImageRegion r{std::min(region.rowBegin, edge.rows), std::min(region.rowEnd, edge.rows),
                        std::min(region.channelBegin, edge.channels), std::min(region.channelEnd, edge.channels)};
    if (r.rowBegin >= r.rowEnd || r.channelBegin >= r.channelEnd) {
        return dataError(edge.id.value, "the region holds no values", "rows and channels inside the tensor");
    }
    const std::uint64_t height = r.rowEnd - r.rowBegin, width = r.channelEnd - r.channelBegin;
    MaxImage image{std::min<std::size_t>(height, maxRows),
                   std::min<std::size_t>(width, maxCols),
                   r.rowBegin,
                   r.rowEnd,
                   r.channelBegin,
                   r.channelEnd,
                   {}};
    image.value.assign(image.rows * image.cols, 0.0F);
    const auto visited = dump.visitBlocks(
        edge,
        [&](const Block &block) {
            const std::uint64_t begin = std::max(block.begin, r.rowBegin);
            const std::uint64_t end = std::min<std::uint64_t>(block.begin + block.values.rows(), r.rowEnd);
            for (std::uint64_t row = begin; row < end; ++row) {
                const auto values = block.values.row(row - block.begin);
                float *cells = image.value.data() + cellOf(row - r.rowBegin, height, image.rows) * image.cols;
                for (std::uint64_t k = r.channelBegin; k < r.channelEnd; ++k) {
                    const double x = values[k];
                    if (std::isfinite(x)) {
                        keepLarger(cells[cellOf(k - r.channelBegin, width, image.cols)], static_cast<float>(x));
                    }
                }
            }
            return block.begin + block.values.rows() < r.rowEnd;
        },
        stop);
    if (stop.stop_requested()) {
        return cancelled(edge.id.value);
    }
    if (!visited) {
        return tl::make_unexpected(visited.error());
    }
    return image;
}

MaxImage reduceImage(const MaxImage &image, std::size_t maxRows, std::size_t maxCols)
{
    if (image.rows <= maxRows && image.cols <= maxCols) {
        return image;
    }
    MaxImage small = image;
    small.rows = std::min(image.rows, std::max<std::size_t>(maxRows, 1));
    small.cols = std::min(image.cols, std::max<std::size_t>(maxCols, 1));
    small.value.assign(small.rows * small.cols, 0.0F);
    for (std::size_t r = 0; r < image.rows; ++r) {
        float *cells = small.value.data() + cellOf(r, image.rows, small.rows) * small.cols;
        for (std::size_t c = 0; c < image.cols; ++c) {
            keepLarger(cells[cellOf(c, image.cols, small.cols)], image.value[r * image.cols + c]);
        }
    }
    return small;
}

} // namespace planish
