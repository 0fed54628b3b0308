// What a tensor-parallel degree allows: heads, groups and blocks must divide, and no factor may cross the shards of a
// row-parallel weight (o_proj, down_proj). rotation.md 8.
#pragma once

#include <vector>

#include "core/graph/placement.h"

namespace planish {

/// Errors with rule divisibility or crosses_shards; empty for one device. `online` = the operators that run on the activation.
std::vector<Refusal> tensorParallelFaults(const Edge &edge, const Rewrite &rewrite, const std::vector<Operator> &online,
                                          const PlacementContext &context);

/// The edge feeds a weight that is split along its columns.
bool isRowParallel(const Edge &edge);

} // namespace planish
