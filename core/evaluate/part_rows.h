// Rows of one part of an edge with their product, for measurements that fit nothing: interventions and sensitivity.
#pragma once

#include <string_view>

#include "core/evaluate/edge_data.h"

namespace planish {

/// File rows and token positions of a set of rows, as places in X see them.
struct PlacedRows {
    std::vector<std::int64_t> fileRows;
    std::vector<std::int32_t> positions;
    std::size_t size() const { return fileRows.size(); }
};

struct PartRows {
    Part part = Part::HeldOut;
    PlacedRows placed, ranges; ///< measured rows; calibration rows that fix static ranges
    std::vector<std::int32_t> units, requests;
    std::int64_t available = 0; ///< rows of the part before the budget
    ProductRows product;
};

std::string_view nameOf(Part part); ///< held_out, calibration, all, …

/// Held-out, calibration or all counted rows within the budget, with Y. Other parts are Usage errors: sealed rows alone are
/// read by `verify` only.
Expected<PartRows> partRows(const EdgeData &data, Part part);

/// The `output` block of an error on these rows.
OutputBlock blockOf(const EdgeData &data, const PartRows &rows, ResidualSums sums);
/// ||E||_F / ||Y||_F of sums; infinite when only Y is zero.
double relativeOf(const ResidualSums &sums);

} // namespace planish
