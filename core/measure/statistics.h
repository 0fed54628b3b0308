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

    Expected<void> merge(const Statistics &other); ///< refuses different tau or K by name
};

/// One pass over the counted rows of an edge (two radix passes more for f32/f64 medians).
Expected<Statistics> computeStatistics(const Dump &dump, const DumpEdge &edge, const std::vector<std::int64_t> &countedFileRows,
                                       const StatisticsRequest &request, std::stop_token stop);

/// Channel statistics of rows already in memory (fits on budgeted or explicit rows).
Statistics statisticsOf(ConstViewD x, double tau = 6.0);

} // namespace planish
