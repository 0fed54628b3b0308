// Windows of a token x channel picture and their reduction to the pixels at hand; the pictures themselves come from
// core/geometry.
#pragma once

#include "core/geometry/concentration.h"

namespace planish {

/// A rectangle of the activation tensor, half open, rows of the file and channels.
struct ImageRegion {
    std::uint64_t rowBegin = 0, rowEnd = 0, channelBegin = 0, channelEnd = 0;
    bool operator==(const ImageRegion &) const = default;
};

/// Reduces a picture to at most `maxRows` x `maxCols` cells, keeping the value of largest magnitude of each.
MaxImage reduceImage(const MaxImage &image, std::size_t maxRows, std::size_t maxCols);

} // namespace planish
