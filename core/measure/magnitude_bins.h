// Counts of |x| by the top 16 bits of its bit pattern, and the lower median from them: exact for 16-bit inputs, refined by radix
// passes for f32 and f64.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include "core/measure/counted_rows.h"

namespace planish
{

inline constexpr std::size_t kMagnitudeBins = 65536;

/// Magnitude that stands for a bin: the value itself for f16 and bf16, the middle of the bin for f32 and f64.
double binMagnitude(StoredKind kind, std::size_t bin);

/// Lower median (index (n-1)/2) of the counted magnitudes; nullopt when nothing is counted.
std::optional<double> medianOfBins(StoredKind kind, const std::vector<std::uint64_t> &counts);
/// Elements in bins whose magnitude is above `bound`.
std::uint64_t countAbove(StoredKind kind, const std::vector<std::uint64_t> &counts, double bound);

/// What the radix passes over f32 or f64 rows find.
struct RadixMedian {
    double median = 0.0;
    std::uint64_t above = 0;                            ///< elements with |x| > bound, exact
    std::vector<std::vector<std::uint64_t>> unitCounts; ///< top-16-bit counts per unit
};
/// `rowUnit` gives the unit of every counted row (empty: one unit). Exact for any input; non-finite elements are left out.
Expected<RadixMedian> radixMedian(const CountedRows &rows, const std::vector<std::int32_t> &rowUnit, std::size_t units,
                                  double bound, std::stop_token stop);

/// Lower median of |x| of values in memory, non-finite ones left out.
std::optional<double> medianMagnitude(std::vector<double> values);

/// Calls visit(raw part, unit) for the runs of rows of one unit inside `raw`.
template <class Visit> void forUnitRuns(const RawRows &raw, const std::vector<std::int32_t> &rowUnit, Visit &&visit)
{
    for (std::size_t r = 0; r < raw.rows;) {
        std::size_t end = raw.rows;
        std::int32_t unit = 0;
        if (!rowUnit.empty()) {
            unit = rowUnit[raw.firstIndex + r];
            end = r + 1;
            while (end < raw.rows && rowUnit[raw.firstIndex + end] == unit)
                ++end;
        }
        visit(RawRows{raw.kind, raw.data + r * raw.strideBytes, end - r, raw.strideBytes, raw.firstIndex + r}, unit);
        r = end;
    }
}

} // namespace planish
