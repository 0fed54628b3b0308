// Accumulators of one tile of statistics (256 channels), structure of arrays, and the loops that fill them strip by strip.
// The vector loops are in statistics_vector; statistics_segment folds tiles in a fixed order.
#pragma once

#include <cstring>
#include <type_traits>

#include "kernels/float_codes.h"
#include "kernels/statistics.h"

namespace planish::cpu {

inline constexpr std::size_t kStatSegmentRows = 1024; ///< counts fit in 16 bits, sums in double stay exact to 1e-13
inline constexpr std::size_t kStatTileChannels = 256; ///< accumulators and pivots stay in the first-level cache
inline constexpr std::size_t kStatStripRows = 16;     ///< rows taken at once: the first-level cache holds a tile of them
inline constexpr std::size_t kPatterns = 32768;       ///< magnitudes of 16-bit kinds

/// Thresholds as patterns: |x| > tau <=> pattern > over, |x| >= tau <=> pattern > overOrEqual, not finite <=> pattern >=
/// infinite.
template <class Integer> struct PatternLimits {
    Integer over = 0, overOrEqual = 0, infinite = 0;
};

/// Channel accumulators of one tile. Extrema are kept as three extrema of the raw patterns: positive numbers order as signed
/// integers, negative ones the other way round, so the largest unsigned pattern is the most negative number, if there is one.
template <class Integer> struct alignas(64) StatTile {
    Integer signedMax[kStatTileChannels], signedMin[kStatTileChannels];
    std::make_unsigned_t<Integer> unsignedMax[kStatTileChannels];
    Integer over[kStatTileChannels], overOrEqual[kStatTileChannels];
    double pivot[kStatTileChannels], s1[kStatTileChannels], s2[kStatTileChannels], s3[kStatTileChannels], s4[kStatTileChannels];
    double sumAbs[kStatTileChannels], finite[kStatTileChannels]; ///< s1..s4: sums of (x - pivot)^j

    /// Patterns of the largest and the smallest number of a channel that has one.
    Integer highest(std::size_t c) const { return signedMax[c] >= 0 ? signedMax[c] : signedMin[c]; }
    Integer lowest(std::size_t c) const { return signedMin[c] < 0 ? static_cast<Integer>(unsignedMax[c]) : signedMin[c]; }
};

/// Row accumulators of one strip, added up over the tiles.
template <class Integer> struct StripRows {
    double energy[kStatStripRows] = {}; ///< of one tile
    Integer highest[kStatStripRows] = {}; ///< pattern of max |x| so far
    std::uint32_t over[kStatStripRows] = {};
};

/// What a strip reads: `data` at its first element; `rowsAfter` more rows follow in memory (they are prefetched).
struct StripInput {
    const std::byte *data = nullptr;
    std::size_t rows = 0, channels = 0, strideBytes = 0, rowsAfter = 0;
};

/// Two histograms used in turn (neighbouring equal values would wait for each other's store).
struct HistogramPair {
    std::uint32_t *even = nullptr, *odd = nullptr; ///< kPatterns each, or null
};

inline constexpr std::size_t kNotFinite = static_cast<std::size_t>(-1);

/// Adds a strip to the channels that fill whole vectors; returns how many it did, or kNotFinite when one of them holds an element
/// that is not finite: then nothing was added. Sets rows.energy to that of these channels.
std::size_t fillStripVector(StoredKind kind, const StripInput &in, const PatternLimits<std::int16_t> &limits,
                            StatTile<std::int16_t> &tile, StripRows<std::int16_t> &rows, HistogramPair histogram);
std::size_t fillStripVector(StoredKind kind, const StripInput &in, const PatternLimits<std::int32_t> &limits,
                            StatTile<std::int32_t> &tile, StripRows<std::int32_t> &rows, HistogramPair histogram);
std::size_t fillStripVector(StoredKind kind, const StripInput &in, const PatternLimits<std::int64_t> &limits,
                            StatTile<std::int64_t> &tile, StripRows<std::int64_t> &rows, HistogramPair histogram);

} // namespace planish::cpu
