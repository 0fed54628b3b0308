// The largest |X| and |Y| of every unit of rows, for super weights. Y = X W^T is formed only for rows whose norm still allows a
// new maximum.
#pragma once

#include "core/geometry/edge_weights.h"

namespace planish {

/// Per unit, values above `floor` only (others keep channel -1). Smallest row, then channel, among equals.
Expected<std::vector<UnitExtreme>> inputExtremes(const Opened &opened, const Edge &edge, const Statistics &statistics,
                                                 double floor);

/// At most `budget` rows are multiplied (< 0: all), largest norms first: |y| <= ||x|| ||w|| leaves the others out exactly, but
/// for the rare edge where more rows than the budget could hold the maximum.
Expected<OutputExtremes> outputExtremes(const Opened &opened, const Edge &edge, const MatrixD &w, const Statistics &statistics,
                                        double floor, std::int64_t budget, std::stop_token stop);

} // namespace planish
