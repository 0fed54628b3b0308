// One-pass statistics over stored rows (f16, bf16, f32, f64 as bytes): per channel, per row and the histogram of |x|.
// Numbers only; what they mean and how parts merge: core/measure/statistics. Widening happens here, never in a file library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace planish {

/// How one stored number is encoded, native byte order.
enum class StoredKind { F16, Bf16, F32, F64 };

std::size_t byteSize(StoredKind kind);

/// Accumulators of [rows, K] elements. Non-finite elements are left out of everything but `nonFinite` and the first place.
/// Sums are exact to about 1e-14 relative; counts, extrema and the histogram are exact. Equal bits for any thread count.
struct BlockStatistics {
    BlockStatistics() = default;
    BlockStatistics(std::size_t channels, double threshold);

    double tau = 6.0;
    std::size_t channels = 0;
    std::size_t rows = 0; ///< accumulated so far

    // Per channel, K entries each. A channel without a finite element has minimum +inf, maximum -inf, maxAbs 0.
    std::vector<double> minimum, maximum, maxAbs, sum, sumAbs, energy;
    std::vector<double> mean, m2, m3, m4; ///< central moments: sums of (x - mean)^j over the finite elements
    std::vector<std::uint64_t> finite, nonFinite, overTau, overTauOrEqual;

    // Per row, appended in the order of the calls.
    std::vector<double> rowMaxAbs, rowEnergy;
    std::vector<std::uint32_t> rowOverTau;

    /// Counts by the 15-bit pattern of |x| for 16-bit kinds (65,536 entries, the upper half stays zero), else empty.
    std::vector<std::uint64_t> histogram;

    std::int64_t firstNonFiniteRow = -1; ///< in accumulated rows; smallest row, then channel
    std::int64_t firstNonFiniteChannel = -1;
};

/// Rows as a fetch gives them; null data: they cannot be had.
struct FetchedRows {
    const std::byte *data = nullptr;
    std::size_t strideBytes = 0;
};
/// Gives rows [first, first + rows) of a source, in place or written to `space` (exactly that many compact rows). Called from
/// several threads at once, in no order; the rows must stay readable until the same thread's next call.
using FetchRows = std::function<FetchedRows(std::size_t first, std::size_t rows, std::span<std::byte> space)>;

/// Consecutive rows of a source and the accumulator they belong to.
struct StatisticsRun {
    std::size_t firstRow = 0, rows = 0;
    BlockStatistics *into = nullptr; ///< of the same K and tau in all runs of a call
};

/// Adds the rows of all runs, in their order, without holding more than a piece of them per thread. `threads`: 0 = the caller's
/// arena. False when a fetch failed; the accumulators are then meaningless.
bool accumulateRuns(StoredKind kind, std::span<const StatisticsRun> runs, const FetchRows &fetch, int threads = 0);

/// Adds `rows` rows of K = into.channels elements, `strideBytes` from one row to the next. `threads`: 0 = the caller's arena.
/// One kind per accumulator. Rows of one call should be many (a block of about 32 MiB): the call is the unit of work.
void accumulateRows(StoredKind kind, const std::byte *data, std::size_t rows, std::size_t strideBytes, BlockStatistics &into,
                    int threads = 0);

/// The same numbers by plain loops in double (the oracle of the tests).
void accumulateRowsReference(StoredKind kind, const std::byte *data, std::size_t rows, std::size_t strideBytes,
                             BlockStatistics &into);

/// Widens `count` stored numbers to double, exactly.
void widen(StoredKind kind, const std::byte *data, std::size_t count, double *out);

} // namespace planish
