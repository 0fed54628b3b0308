// A full-width rotation on a weight that devices share by columns needs communication. Its rank-local twin needs none; it is
// evaluated beside the full one, so that what the smaller mixing loses is a number (plan.md "Ledger", rotation.md 8).
#pragma once

#include <vector>

#include "core/graph/model_graph.h"
#include "core/methods/method_table.h"

namespace planish {

/// The candidates, each `hadamard` followed by one twin per shard width of the row-parallel edges it is meant for.
Expected<std::vector<Candidate>> withRankLocal(const ModelGraph &graph, const std::vector<Candidate> &candidates, int devices);

} // namespace planish
