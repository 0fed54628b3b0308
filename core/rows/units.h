// Split units of a token table and the row filter in front of them. Internal to core/rows; meaning: evaluation.md 1.
#pragma once

#include <cstdint>
#include <vector>

#include "core/rows/split.h"

namespace planish {

/// mask != 0, asked phase, not a skipped position or id. Finite values are checked when rows are read.
bool isCounted(const TokenTable &tokens, std::size_t token, const RowRequest &request);

/// Units of the counted token rows, file order: one per request, or blocks of a request when there are fewer than three.
struct UnitList {
    SplitUnit kind = SplitUnit::Request;
    std::vector<Unit> units;
};
UnitList formUnits(const TokenTable &tokens, const RowRequest &request);

/// Unit indices by the hex SHA-256 of "<seed>:<unit id>", ascending.
std::vector<std::int32_t> hashedOrder(const std::vector<Unit> &units, std::uint64_t seed);

} // namespace planish
