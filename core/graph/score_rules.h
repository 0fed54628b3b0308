// Rules of query and key edges, which have no consumer linear: their other side is the key or query of the same layer.
#pragma once

#include <string>
#include <vector>

#include "core/graph/placement.h"

namespace planish {

bool isScoreSite(const std::string &site);

/// Faults of a rewrite on a query or key edge: behind q_norm/k_norm, inside RoPE, across heads. All are Errors: no operator at
/// that place helps.
std::vector<Refusal> scoreFaults(const Edge &edge, const Rewrite &rewrite, const PlacementContext &context);

} // namespace planish
