// Per-channel numbers a diagonal method needs: maxima, rms, quantiles and ranges of X, maxima and rms of the stacked weights,
// and the reduction of such numbers over tie sets. All return K entries.
#pragma once

#include <vector>

#include "core/methods/method.h"

namespace planish {

enum class ChannelStatistic { AbsMax, Rms, Percentile, Range, AbsMean, Energy };

/// From accumulated statistics of all calibration rows; Percentile needs rows: use channelQuantile.
std::vector<double> channelStatistic(const Statistics &statistics, ChannelStatistic which);
/// Linear quantile `q` of |x| in every channel of x [rows, K].
std::vector<double> channelQuantile(ConstViewD x, double q);

/// max over consumers i and rows n of |W_i[n,k]| (diagonal.md 5.1).
std::vector<double> weightMaxima(const std::vector<ConsumerWeights> &consumers);
/// Root mean square of W[:,k] over all rows of all consumers.
std::vector<double> weightRms(const std::vector<ConsumerWeights> &consumers);

enum class TieReduction { Max, Mean };
/// Replaces every value by the maximum (or mean) of its tie set; without ties the values are unchanged.
std::vector<double> reducedOverTies(std::vector<double> values, const Ties &ties, TieReduction reduction);

/// Channel indices by value descending, index ascending among equals.
std::vector<std::int64_t> channelsDescending(const std::vector<double> &values);

/// Linear quantile of sorted values, h = (n-1) q (diagonal.md 3.1).
double linearQuantile(const std::vector<double> &sorted, double q);

} // namespace planish
