// Which elements share a step: runs of consecutive channels per row, numbered row-major. No numbers of the format.
#pragma once

#include <algorithm>
#include <string>

#include "kernels/backend.h"

namespace planish {

struct ShareLayout {
    std::size_t rows = 0, cols = 0;
    Sharing sharing = Sharing::Row;
    std::size_t width = 0;  ///< channels of a run
    std::size_t perRow = 1; ///< runs of a row

    std::size_t shares() const
    {
        switch (sharing) {
        case Sharing::Tensor:
            return 1;
        case Sharing::Channel:
            return cols;
        default:
            return rows * perRow;
        }
    }
    std::size_t shareOf(std::size_t row, std::size_t run) const
    {
        switch (sharing) {
        case Sharing::Tensor:
            return 0;
        case Sharing::Channel:
            return run;
        default:
            return row * perRow + run;
        }
    }
    std::size_t runBegin(std::size_t run) const { return run * width; }
    std::size_t runEnd(std::size_t run) const { return std::min(cols, (run + 1) * width); }
    /// Steps are found row by row, while the row is at hand.
    bool rowsAreIndependent() const { return sharing != Sharing::Tensor && sharing != Sharing::Channel; }
};

KernelResult<ShareLayout> layoutOf(const NumberGrid &grid, std::size_t rows, std::size_t cols);

/// Checks the optional parts of a request against the layout.
KernelResult<void> checkRequest(const QuantizeRequest &request, const ShareLayout &layout);

} // namespace planish
