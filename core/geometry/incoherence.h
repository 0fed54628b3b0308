// Incoherence per token as a picture: mu = sqrt(K) max|x| / ||x||, from 1 (flat) to sqrt K (one spike). diagonal.md 1.1.
#pragma once

#include "core/geometry/histogram.h"

namespace planish {

struct IncoherenceProfile {
    Histogram histogram; ///< over [1, sqrt K]; zero rows are not in it
    double mean = 0, median = 0, maximum = 0;
    std::int64_t maximumRow = -1; ///< file row
    std::uint64_t zeroRows = 0;
    double bound = 1; ///< sqrt K
};

/// Needs per-token arrays; without rows that are not zero the figures are 0 and maximumRow is -1.
IncoherenceProfile incoherenceProfile(const Statistics &statistics, std::size_t bins = 64);

/// mu of one row.
double incoherence(std::span<const double> row);

} // namespace planish
