#include "kernels/operator_check.h"

#include <bit>
#include <string>

namespace planish {

namespace {

KernelResult<void> mismatch(std::string message)
{
    return tl::make_unexpected(Status{StatusCode::ShapeMismatch, std::move(message)});
}

KernelResult<void> check(const ScaleStep &step, std::size_t channels)
{
    return step.divisor.size() == channels ? KernelResult<void>{}
                                           : mismatch("a scale of " + std::to_string(step.divisor.size()) + " channels; " +
                                                      std::to_string(channels) + " were expected");
}

KernelResult<void> check(const PermuteStep &step, std::size_t channels)
{
    if (step.perm.size() != channels) {
        return mismatch("a permutation of " + std::to_string(step.perm.size()) + " channels; " + std::to_string(channels) +
                        " were expected");
    }
    std::vector<bool> seen(channels);
    for (const auto place : step.perm) {
        if (place < 0 || static_cast<std::size_t>(place) >= channels || seen[static_cast<std::size_t>(place)]) {
            return mismatch("the permutation names channel " + std::to_string(place) + " twice or outside the tensor");
        }
        seen[static_cast<std::size_t>(place)] = true;
    }
    return {};
}

KernelResult<void> check(const HadamardStep &step, std::size_t channels)
{
    const std::size_t m = step.table.empty() ? 1 : step.table.rows();
    if (step.block == 0 || channels % step.block != 0 || step.block % m != 0 || !std::has_single_bit(step.block / m) ||
        (m > 1 && step.table.cols() != m)) {
        return mismatch("a Hadamard block of " + std::to_string(step.block) + " with a table of order " + std::to_string(m) +
                        "; a divisor of " + std::to_string(channels) + " that is the order times a power of two was expected");
    }
    if (!step.signs.empty() && step.signs.size() != channels) {
        return mismatch(std::to_string(step.signs.size()) + " signs; " + std::to_string(channels) + " were expected");
    }
    return {};
}

KernelResult<void> check(const BlockDenseStep &step, std::size_t channels)
{
    if (step.blocks.empty() || step.blocks.size() != step.inverseTransposed.size()) {
        return mismatch("block matrices and their inverses differ in number");
    }
    const std::size_t width = step.blocks.front().rows();
    for (std::size_t i = 0; i < step.blocks.size(); ++i) {
        for (const MatrixD *block : {&step.blocks[i], &step.inverseTransposed[i]}) {
            if (block->rows() != width || block->cols() != width) {
                return mismatch("block matrices are not square of one width");
            }
        }
    }
    if (width == 0 || channels % width != 0 || step.assignment.size() != channels / width) {
        return mismatch("blocks of " + std::to_string(width) + " with " + std::to_string(step.assignment.size()) +
                        " assignments do not cover " + std::to_string(channels) + " channels");
    }
    for (const auto block : step.assignment) {
        if (block < 0 || static_cast<std::size_t>(block) >= step.blocks.size()) {
            return mismatch("the assignment names block " + std::to_string(block) + " that does not exist");
        }
    }
    return {};
}

} // namespace

KernelResult<void> checkSteps(std::span<const OperatorStep> steps, std::size_t channels, std::span<const double> shift)
{
    if (!shift.empty() && shift.size() != channels) {
        return mismatch("a shift of " + std::to_string(shift.size()) + " channels; " + std::to_string(channels) +
                        " were expected");
    }
    for (const OperatorStep &step : steps) {
        if (auto ok = std::visit([channels](const auto &s) { return check(s, channels); }, step); !ok) {
            return ok;
        }
    }
    return {};
}

} // namespace planish
