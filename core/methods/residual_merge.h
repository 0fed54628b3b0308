// Joining error sums of one edge: consumers side by side (outputs append, rows add), units below one another (rows append).
#pragma once

#include <vector>

#include "kernels/backend.h"

namespace planish {

/// `part` holds the same rows and further outputs. Empty `whole` takes `part` as it is.
void appendConsumer(ResidualSums &whole, const ResidualSums &part);
/// `part` holds the rows `rows` of `total` rows and the same outputs.
void scatterRows(ResidualSums &whole, const ResidualSums &part, const std::vector<std::size_t> &rows, std::size_t total);

} // namespace planish
