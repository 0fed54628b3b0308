// One segment of the statistics scan: up to 1024 rows of all channels, taken piece by piece so that the bytes are still in the
// second-level cache when they are read. Segments are folded in a fixed order by statistics.cpp.
#pragma once

#include <memory>
#include <vector>

#include "kernels/cpu/statistics_tile.h"

namespace planish::cpu {

/// Thresholds of a kind as patterns.
template <class Integer> PatternLimits<Integer> limitsOf(StoredKind kind, double tau);

/// Channel sums of one segment, K entries each; a channel without a finite element has lowest +inf and highest -inf.
struct ChannelFold {
    std::vector<double> lowest, highest, sum, sumAbs, energy, finite, mean, m2, m3, m4;
    std::vector<std::uint32_t> over, overOrEqual;
    std::int64_t firstRow = -1, firstChannel = -1; ///< first element that is not finite, in rows of the segment

    void resize(std::size_t channels);
};

/// Where the row results of a segment go, one entry per row.
struct RowTargets {
    double *maxAbs = nullptr, *energy = nullptr;
    std::uint32_t *over = nullptr;
};

/// Scans one segment after another; keeps its buffers. One thread at a time.
template <class Integer> class SegmentScan {
public:
    SegmentScan(StoredKind kind, std::size_t channels, double tau);

    /// False when a fetch failed; then `fold` and `targets` are meaningless.
    bool scan(const FetchRows &fetch, std::size_t firstRow, std::size_t rows, HistogramPair histogram, RowTargets targets,
              ChannelFold &fold);

private:
    /// A strip of one tile and its place in the segment.
    struct Strip {
        StripInput in;
        std::size_t row = 0, channel = 0;
    };

    bool start(const FetchRows &fetch, std::size_t firstRow, std::size_t rows);
    void scanPiece(const StripInput &piece, std::size_t rowsBefore, HistogramPair histogram, RowTargets targets);
    void addStrip(const Strip &strip, StripRows<Integer> &rows, HistogramPair histogram);
    void addScalar(const Strip &strip, std::size_t begin, StripRows<Integer> &rows, HistogramPair histogram);
    void notePlace(std::size_t row, std::size_t channel);
    std::size_t tileChannels(std::size_t tile) const;

    StoredKind m_kind;
    std::size_t m_channels, m_pieceRows, m_strideBytes;
    PatternLimits<Integer> m_limits;
    std::vector<StatTile<Integer>> m_tiles;
    std::vector<std::byte> m_buffer;
    std::int64_t m_firstRow = -1, m_firstChannel = -1; ///< first element of the segment that is not finite
};

} // namespace planish::cpu
