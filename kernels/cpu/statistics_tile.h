// Accumulators of one tile of statistics: 1024 rows x 256 channels, structure of arrays, and the scalar loop that fills them.
// The vector loop is in statistics_vector; statistics.cpp folds tiles in a fixed order.
#pragma once

#include <cstring>

#include "kernels/float_codes.h"
#include "kernels/statistics.h"

namespace planish::cpu {

inline constexpr std::size_t kStatTileRows = 1024;    ///< counts fit in 16 bits, sums in double stay exact to 1e-13
inline constexpr std::size_t kStatTileChannels = 256; ///< accumulators and pivots stay in the first-level cache

/// Integers of the stored width: patterns of |x| and order-preserving images of x compare exactly and without widening.
template <class Stored> struct StoredInteger;
template <> struct StoredInteger<std::uint16_t> {
    using Type = std::int16_t;
};
template <> struct StoredInteger<float> {
    using Type = std::int32_t;
};
template <> struct StoredInteger<double> {
    using Type = std::int64_t;
};

/// Thresholds as patterns: |x| > tau <=> pattern > over, |x| >= tau <=> pattern > overOrEqual, not finite <=> pattern >=
/// infinite.
template <class Integer> struct PatternLimits {
    Integer over = 0, overOrEqual = 0, infinite = 0;
};

/// One tile, raw. Integers where order is all that counts, doubles for sums; d = x - pivot.
template <class Integer> struct alignas(64) StatTile {
    Integer lowest[kStatTileChannels], highest[kStatTileChannels]; ///< order-preserving images
    Integer over[kStatTileChannels], overOrEqual[kStatTileChannels];
    double pivot[kStatTileChannels], s1[kStatTileChannels], s2[kStatTileChannels], s3[kStatTileChannels], s4[kStatTileChannels];
    double sumAbs[kStatTileChannels], finite[kStatTileChannels];
    double rowEnergy[kStatTileRows];
    Integer rowHighest[kStatTileRows]; ///< pattern of max |x|
    std::uint32_t rowOver[kStatTileRows];
};

/// x <-> integer of the same order (two's complement from sign and magnitude); its own inverse.
template <class Integer> Integer ordered(Integer pattern)
{
    constexpr int kShift = 8 * sizeof(Integer) - 1;
    constexpr Integer kMagnitude = static_cast<Integer>(~(std::uint64_t(1) << kShift));
    return static_cast<Integer>(pattern ^ (static_cast<Integer>(pattern >> kShift) & kMagnitude));
}

/// What a tile reads: `data` at its first element.
struct TileInput {
    const std::byte *data = nullptr;
    std::size_t rows = 0, channels = 0, strideBytes = 0;
};

/// Two histograms used in turn (neighbouring equal values would wait for each other's store).
struct HistogramPair {
    std::uint32_t *even = nullptr, *odd = nullptr; ///< 32,768 each, or null
};

/// Vector loop over the channels that fill whole vectors; returns how many it did. Values must be finite to be meaningful.
/// The histogram covers all channels of the tile.
std::size_t fillTileVector(StoredKind kind, const TileInput &in, const PatternLimits<std::int16_t> &limits,
                           StatTile<std::int16_t> &tile, HistogramPair histogram);
std::size_t fillTileVector(StoredKind kind, const TileInput &in, const PatternLimits<std::int32_t> &limits,
                           StatTile<std::int32_t> &tile, HistogramPair histogram);
std::size_t fillTileVector(StoredKind kind, const TileInput &in, const PatternLimits<std::int64_t> &limits,
                           StatTile<std::int64_t> &tile, HistogramPair histogram);

} // namespace planish::cpu
