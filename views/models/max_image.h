// Pictures of X that never lose a maximum: every cell holds the value of largest magnitude of the rows and channels it covers.
#pragma once

#include <stop_token>

#include "core/geometry/concentration.h"
#include "core/io/dump.h"

namespace planish
{

/// A rectangle of the activation tensor, half open, rows of the file and channels.
struct ImageRegion {
    std::uint64_t rowBegin = 0, rowEnd = 0, channelBegin = 0, channelEnd = 0;
    bool operator==(const ImageRegion &) const = default;
};

/// Reads the region block by block and reduces it to at most `maxRows` x `maxCols` cells. Non-finite values are left out.
Expected<MaxImage> loadMaxImage(const Dump &dump, const DumpEdge &edge, const ImageRegion &region, std::size_t maxRows,
                                std::size_t maxCols, std::stop_token stop);

/// Reduces a picture to at most `maxRows` x `maxCols` cells, keeping the value of largest magnitude of each.
MaxImage reduceImage(const MaxImage &image, std::size_t maxRows, std::size_t maxCols);

} // namespace planish
