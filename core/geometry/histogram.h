// Histograms for pictures: values of an edge on a linear or logarithmic axis, and any list of numbers (incoherence per token).
// Not for medians or thresholds; those come from exact counts (core/measure).
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "core/measure/statistics.h"

namespace planish {

enum class BinScale { Linear, Logarithmic };

/// Bins [edges[i], edges[i+1]); the last includes its upper end. Values outside are counted beside.
struct Histogram {
    BinScale scale = BinScale::Linear;
    std::vector<double> edges; ///< bins + 1, ascending; equal steps, or equal ratios when logarithmic
    std::vector<std::uint64_t> counts;
    std::uint64_t below = 0, above = 0; ///< on a logarithmic axis zeros and negatives are below
    std::uint64_t nonFinite = 0;
};

/// Empty bins over [low, high]. A logarithmic axis needs low > 0; a degenerate range gets one bin around its value.
Histogram emptyHistogram(BinScale scale, double low, double high, std::size_t bins);
void addTo(Histogram &histogram, double value, std::uint64_t count = 1);

/// Range from the smallest to the largest finite value (positive value when logarithmic).
Histogram histogramOf(std::span<const double> values, std::size_t bins, BinScale scale);

enum class ValueSign { Signed, Magnitude };
struct ValueHistogramRequest {
    BinScale scale = BinScale::Linear;
    ValueSign sign = ValueSign::Signed;
    std::size_t bins = 256;
};
/// One pass over the counted rows; the range is that of `statistics`. Signed values need a linear axis.
Expected<Histogram> valueHistogram(const Dump &dump, const DumpEdge &edge, const Statistics &statistics,
                                   const ValueHistogramRequest &request, std::stop_token stop);

} // namespace planish
