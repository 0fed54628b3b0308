// The pieces of the jackknife: units of rows, leave-one-out values, its standard error and Student's t. evaluation.md 7.
#pragma once

#include <string>
#include <vector>

#include "core/evaluate/compare.h"
#include "core/evaluate/output_block.h"

namespace planish {

struct JackknifeUnits {
    std::string name; ///< request | block
    std::size_t count = 0;
    std::vector<std::int32_t> ofRow; ///< unit of each row
};

/// Held-out requests when there are at least 8, else 8 contiguous blocks of counted rows, equal to one row.
JackknifeUnits jackknifeUnits(const ErrorSums &sums);
/// r_(-j) of relative_frobenius (Pooled) or of rows.rms (Rows).
std::vector<double> leaveOneOut(const ErrorSums &sums, const JackknifeUnits &units, RankBy by);
/// sqrt((U-1)/U sum (r_(-j) - mean)^2).
double jackknifeError(const std::vector<double> &leaveOneOut);
/// t(.975, degrees).
double studentQuantile(std::size_t degrees);

} // namespace planish
