// Token x channel pictures that never lose a maximum: a pyramid of 2x2 maxima of |x| (with sign) built in one pass, and images of
// any zoom window from it. Rows are rows of the file. Windows finer than the stored base are read from the dump.
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "core/geometry/concentration.h"
#include "core/io/dump.h"
#include "core/io/error.h"

namespace planish {

/// A window of file rows and channels (half open) and the cells a picture has room for.
struct MaxImageRequest {
    std::uint64_t rowBegin = 0, rowEnd = 0, channelBegin = 0, channelEnd = 0;
    std::size_t maxRows = 1024, maxCols = 2048;
};

/// Immutable after build; thread-safe. Memory: at most about 90 MiB whatever the edge (16,384 x 11,008 keeps a 4 x 4 base).
class MaxPyramid {
public:
    /// One pass over all rows; non-finite values count as 0. Errors of the dump, or cancelled.
    static Expected<std::shared_ptr<const MaxPyramid>> build(const Dump &dump, const DumpEdge &edge, std::stop_token stop);
    /// From values in memory (an edge after a transform). Row 0 of `values` is row 0 of the picture.
    static std::shared_ptr<const MaxPyramid> fromValues(ConstViewD values);

    std::uint64_t rows() const { return m_rows; }
    std::uint64_t channels() const { return m_channels; }
    /// log2 of the side of a base cell: 0 when every element is kept.
    int baseLevel() const { return m_base; }

    /// Cells are whole pyramid cells, so the window grows to their borders (the image says which rows and channels it covers) and
    /// every element inside is covered by exactly one cell. The result has at most maxRows x maxCols cells, at least one.
    MaxImage window(const MaxImageRequest &request) const;

private:
    struct Level {
        std::size_t rows = 0, cols = 0;
        std::vector<float> value;
    };
    MaxPyramid(std::uint64_t rows, std::uint64_t channels);
    void addRow(std::uint64_t row, const double *values);
    void finish();

    std::uint64_t m_rows = 0, m_channels = 0;
    int m_base = 0;
    std::vector<Level> m_levels; ///< base first, each half the one before, down to one cell
};

/// The picture of a window: from the pyramid, or, when the window is finer than its base and small enough, from the rows
/// themselves.
Expected<MaxImage> maxImage(const Dump &dump, const DumpEdge &edge, const MaxPyramid &pyramid, const MaxImageRequest &request,
                            std::stop_token stop);

} // namespace planish
