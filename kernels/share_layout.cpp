#include "kernels/share_layout.h"

namespace planish {

static tl::unexpected<Status> mismatch(std::string message)
{
    return tl::make_unexpected(Status{StatusCode::ShapeMismatch, std::move(message)});
}

KernelResult<ShareLayout> layoutOf(const NumberGrid &grid, std::size_t rows, std::size_t cols)
{
    ShareLayout layout{rows, cols, grid.sharing, cols, 1};
    std::size_t group = grid.group;
    if (isBlockFormat(grid.format)) {
        layout.sharing = Sharing::Block;
        group = grid.format == NumberFormat::NvFp4 ? 16 : 32;
    }
    if (layout.sharing == Sharing::Channel) {
        layout.width = 1;
        layout.perRow = cols;
        return layout;
    }
    if (layout.sharing != Sharing::Group && layout.sharing != Sharing::Block) {
        return layout;
    }
    if (group == 0) {
        return mismatch("a group of 0 channels was asked for; at least 2 were expected");
    }
    if (grid.tail == TailRule::Reject && layout.sharing == Sharing::Group && cols % group != 0) {
        return mismatch(std::to_string(cols) + " channels leave a short last group of " + std::to_string(cols % group) +
                        "; tail=reject expected a multiple of " + std::to_string(group));
    }
    layout.width = group;
    layout.perRow = (cols + group - 1) / group;
    return layout;
}

static KernelResult<void> checkLength(std::size_t length, std::size_t expected, const char *what)
{
    if (length == expected) {
        return {};
    }
    return mismatch(std::to_string(length) + " " + what + "; " + std::to_string(expected) + " were expected");
}

static KernelResult<void> checkMask(const ExceptionMask &mask, const ShareLayout &layout)
{
    if (!mask.columns.empty()) {
        if (auto ok = checkLength(mask.columns.size(), layout.cols, "exception flags given"); !ok) {
            return ok;
        }
    }
    if (!mask.rowUnit.empty()) {
        if (auto ok = checkLength(mask.rowUnit.size(), layout.rows, "row units given"); !ok) {
            return ok;
        }
    }
    for (const auto unit : mask.rowUnit) {
        if (unit >= 0 && static_cast<std::size_t>(unit) >= mask.unitColumns.size()) {
            return mismatch("row unit " + std::to_string(unit) + " has no exception flags");
        }
    }
    for (const auto &columns : mask.unitColumns) {
        if (!columns.empty()) {
            if (auto ok = checkLength(columns.size(), layout.cols, "exception flags of a unit given"); !ok) {
                return ok;
            }
        }
    }
    return {};
}

KernelResult<void> checkRequest(const QuantizeRequest &request, const ShareLayout &layout)
{
    if (request.ranges) {
        if (auto ok = checkLength(request.ranges->size(), layout.shares(), "static ranges given"); !ok) {
            return ok;
        }
    }
    if (request.clampBound) {
        if (auto ok = checkLength(request.clampBound->size(), layout.shares(), "clip bounds given"); !ok) {
            return ok;
        }
    }
    return request.exceptions ? checkMask(*request.exceptions, layout) : KernelResult<void>{};
}

} // namespace planish
