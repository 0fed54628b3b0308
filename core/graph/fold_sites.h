// Which stored tensors change for a placed rewrite, producer first: the list behind `fused` and `fused_into`.
#pragma once

#include "core/graph/placement.h"

namespace planish {

/// Fills placement.fused and placement.fusedInto from fusedOperators and shiftFused. `context` says which biases may stay absent.
void listFolds(Placement &placement, const Edge &edge, const Rewrite &rewrite, const PlacementContext &context);

/// "name" or "name[a:b]".
std::string textOf(const TensorName &tensor, const RowRangeOf &rows);

} // namespace planish
