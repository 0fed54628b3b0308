// Mergeable statistics of one activation tensor: per channel, per token, whole tensor. Definitions: evaluation.md 2.
// Counts, maxima and the median are bitwise equal under merge; sums to 1e-12.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/io/dump.h"
#include "core/io/error.h"
#include "core/rows/split.h"
#include "kernels/statistics.h"

namespace planish {

struct Moments {
    std::uint64_t n = 0;
    double mean = 0, m2 = 0, m3 = 0, m4 = 0;
    void add(double x);
    void merge(const Moments &other);
    std::optional<double> kurtosis() const; ///< m4/m2^2 population; nullopt for zero variance
};

struct StatisticsRequest {
    double tau = 6.0;
    std::vector<double> thresholds; ///< extra occupancy thresholds
    bool tokens = true;             ///< keep per-token arrays
    /// Unit of every counted row (file order), for bootstrap draws and parts; empty = none wanted. Few units: each costs 150 K bytes.
    std::vector<std::int32_t> rowUnit;
    std::size_t unitCount = 0;
};

/// How often each channel passes one threshold.
struct ThresholdCounts {
    double threshold = 0;
    std::vector<std::uint64_t> over, overOrEqual; ///< [K]
};

/// What a bootstrap draw needs of one unit of rows.
struct UnitSums {
    std::uint64_t rows = 0;
    bool calibration = false;                      ///< belongs to the calibration part
    std::vector<double> minimum, maximum, energy;  ///< [K]; +inf, -inf, 0 without a finite element
    std::vector<std::uint64_t> overTauOrEqual;     ///< [K]
    std::vector<std::uint64_t> histogram;          ///< by the top 16 bits of |x|, see core/measure/magnitude_bins.h
};

/// Per-channel accumulators, structure of arrays, K entries each.
struct ChannelSums {
    std::vector<double> maxAbs, minimum, maximum, sum, sumAbs, energy;
    std::vector<std::uint64_t> overTau, overTauOrEqual, finite, nonFinite;
    std::vector<Moments> moments;
};

struct TokenSums {
    std::vector<std::int64_t> row; ///< file row
    std::vector<double> maxAbs, energy, incoherence; ///< incoherence NaN for a zero row
    std::vector<std::uint32_t> overTau;
    std::vector<std::int32_t> request, position; ///< of the token table; empty for rows in memory
};

/// Everything `analyze` prints about one edge, as accumulators.
struct Statistics {
    double tau = 6.0;
    std::uint64_t rowsInFile = 0, masked = 0, skipped = 0, tokens = 0, channels = 0, zeroRows = 0;
    ChannelSums channel;
    TokenSums token;
    Moments tensor;
    double maxAbs = 0, argmaxValue = 0;
    std::int64_t argmaxRow = -1, argmaxChannel = -1;
    std::uint64_t nonFinite = 0;
    std::int64_t firstNonFiniteRow = -1, firstNonFiniteChannel = -1;
    std::vector<std::uint64_t> histogram;  ///< counts by the 16-bit pattern of |x| for 16-bit inputs, else empty
    bool histogramBf16 = false;
    double medianAbs = 0;
    bool medianExact = true;

    StoredKind kind = StoredKind::F64;          ///< how the values are stored
    std::vector<std::uint64_t> coarseHistogram; ///< f32 and f64: counts by the top 16 bits of |x| (merging, pictures), else empty
    std::uint64_t aboveHalf = 0;                ///< elements above half the maximum; after a merge of f32 or f64 from the coarse counts
    double incoherenceSum = 0, incoherenceMax = 0; ///< over rows that are not zero
    std::vector<ThresholdCounts> thresholds;    ///< one per entry of StatisticsRequest::thresholds
    std::vector<UnitSums> units;                ///< only when asked for; a merge drops them
    std::vector<std::int32_t> rowUnit;          ///< unit of every counted row, with `units`

    std::optional<double> maxToMedian() const;   ///< nullopt for a zero median or no finite element
    std::optional<double> meanIncoherence() const;
    double energy() const;
    std::uint64_t finite() const;
    const ThresholdCounts *at(double threshold) const; ///< nullptr when it was not counted

    Expected<void> merge(const Statistics &other); ///< refuses different tau or K by name
};

/// One pass over the counted rows of an edge (two radix passes more for f32/f64 medians).
Expected<Statistics> computeStatistics(const Dump &dump, const DumpEdge &edge, const std::vector<std::int64_t> &countedFileRows,
                                       const StatisticsRequest &request, std::stop_token stop);

/// Channel statistics of rows already in memory (fits on budgeted or explicit rows).
Statistics statisticsOf(ConstViewD x, double tau = 6.0);

} // namespace planish
