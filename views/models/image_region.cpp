#include "views/models/image_region.h"

#include <algorithm>
#include <cmath>

namespace planish {

namespace {

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
