// Exceptions resolved when X' is known: which columns leave the quantizer, as the kernels take them. diagonal.md 4,
// evaluation.md 9. A static set is the same for all rows; a dynamic set belongs to the unit (request) being multiplied.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/transform/rewrite.h"
#include "kernels/backend.h"

namespace planish {

struct ResolvedExceptions {
    ExceptionMask activation;                           ///< for quantizing X'
    std::vector<std::int32_t> unitIds;                  ///< request of each unit; one entry 0 when all rows are one unit
    std::vector<std::vector<std::uint8_t>> unitColumns; ///< K flags per unit; one entry for static sets
    std::vector<std::int32_t> rowUnit;                  ///< unit index of each row of X'; empty when there is one unit
    std::size_t columnCount(std::size_t unit) const;    ///< columns of that unit's set
};

/// X' [rows, K], `requests` one id per row (may be empty: one unit). Columns outside K are an error.
Expected<ResolvedExceptions> resolveExceptions(const Exceptions &exceptions, ConstViewD xPrime,
                                               std::span<const std::int32_t> requests);

/// Mask for quantizing W' while rows of one unit are multiplied: its columns stay exact and leave the steps, or, with the weights
/// as quantized over full K (bitsandbytes), nothing is taken out.
ExceptionMask weightMask(const Exceptions &exceptions, const std::vector<std::uint8_t> &columns);

/// True when |value| meets the threshold under the comparator.
bool exceeds(double value, double threshold, Comparator comparator);

} // namespace planish
