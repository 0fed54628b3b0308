// Outlier Suppression+ (arXiv 2304.09145; ModelTC/Outlier_Suppression_Plus): shift to the channel midpoint, shrink channels beyond
// a threshold t, chosen by output error. diagonal.md 8.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/methods/channel_factors.h"
#include "core/methods/method_rows.h"
#include "core/methods/param_rows.h"
#include "core/methods/search_loss.h"

namespace planish {
namespace {

// t_min of the released code: 1.0 for OPT and BLOOM, .1 for LLaMA (diagonal.md 8.2).
constexpr double kLayerNormBound = 1.0, kRmsNormBound = 0.1;
constexpr double kEmaKeep = 0.99;

struct Extent {
    std::vector<double> low, high; ///< of the rows the search uses, per channel, reduced over ties
};

bool biasCanAbsorb(const Producer &producer)
{
    if (const auto *norm = std::get_if<NormProducer>(&producer))
        return norm->hasBias;
    if (const auto *linear = std::get_if<LinearProducer>(&producer))
        return linear->hasBias && (linear->between == "identity" || linear->between == "attention" || linear->between.empty());
    return false;
}

bool shiftWanted(const FitInput &input)
{
    return input.params.isWord("shift", "on") || (input.params.isWord("shift", "auto") && biasCanAbsorb(input.edge->producer));
}

/// Rows of the first request, as the released code uses (rows=first_request).
std::vector<std::size_t> usedRows(const FitInput &input)
{
    std::vector<std::size_t> rows;
    const auto &requests = input.calibration.requests();
    for (std::size_t m = 0; m < input.calibration.size(); ++m) {
        if (input.params.isWord("rows", "all") || requests[m] == requests.front())
            rows.push_back(m);
    }
    return rows;
}

void reduceOverTies(std::vector<double> &values, const Ties &ties, double sign)
{
    for (double &value : values)
        value *= sign;
    values = reducedOverTies(std::move(values), ties, TieReduction::Max);
    for (double &value : values)
        value *= sign;
}

Extent extentOf(const FitInput &input)
{
    Extent extent;
    if (input.params.isWord("rows", "all")) {
        extent = {input.statistics->channel.minimum, input.statistics->channel.maximum};
    } else {
        extent = {std::vector<double>(input.edge->channels, std::numeric_limits<double>::infinity()),
                  std::vector<double>(input.edge->channels, -std::numeric_limits<double>::infinity())};
        for (std::size_t m : usedRows(input)) {
            for (std::size_t k = 0; k < input.edge->channels; ++k) {
                extent.low[k] = std::min(extent.low[k], input.calibration.x()(m, k));
                extent.high[k] = std::max(extent.high[k], input.calibration.x()(m, k));
            }
        }
    }
    reduceOverTies(extent.low, input.ties, -1.0);
    reduceOverTies(extent.high, input.ties, 1.0);
    return extent;
}

/// Moving average of the midpoints of the calibration requests, in their order.
std::vector<double> movingMidpoint(const FitInput &input)
{
    const MatrixD &x = input.calibration.x();
    const auto &requests = input.calibration.requests();
    std::vector<double> middle(x.cols(), 0.0);
    for (std::size_t begin = 0, end = 0; begin < x.rows(); begin = end) {
        while (end < x.rows() && requests[end] == requests[begin])
            ++end;
        for (std::size_t k = 0; k < x.cols(); ++k) {
            double low = x(begin, k), high = low;
            for (std::size_t m = begin; m < end; ++m) {
                low = std::min(low, x(m, k));
                high = std::max(high, x(m, k));
            }
            const double now = (low + high) / 2;
            middle[k] = begin == 0 ? now : kEmaKeep * middle[k] + (1 - kEmaKeep) * now;
        }
    }
    return middle;
}

std::vector<double> percentileMidpoint(const FitInput &input, double p)
{
    const MatrixD &x = input.calibration.x();
    std::vector<double> middle(x.cols()), column(x.rows());
    for (std::size_t k = 0; k < x.cols(); ++k) {
        for (std::size_t m = 0; m < x.rows(); ++m)
            column[m] = x(m, k);
        std::ranges::sort(column);
        middle[k] = (linearQuantile(column, p) + linearQuantile(column, 1 - p)) / 2;
    }
    return middle;
}

std::vector<double> shiftOf(const FitInput &input, const Extent &extent)
{
    std::vector<double> shift(extent.low.size());
    if (input.params.isWord("shift_stat", "ema"))
        shift = movingMidpoint(input);
    else if (input.params.isWord("shift_stat", "percentile"))
        shift = percentileMidpoint(input, input.params.real("percentile"));
    else
        for (std::size_t k = 0; k < shift.size(); ++k)
            shift[k] = (extent.high[k] + extent.low[k]) / 2;
    return reducedOverTies(std::move(shift), input.ties, TieReduction::Mean);
}

struct Bounds {
    double low = 0, high = 0;
    std::int64_t steps = 0;
};

Bounds boundsOf(const FitInput &input, const Extent &centred)
{
    const bool rms = input.model && input.model->normKind == "rmsnorm";
    Bounds bounds;
    bounds.low = input.params.isWord("t_min", "auto") ? (rms ? kRmsNormBound : kLayerNormBound) : input.params.real("t_min");
    const double positive = std::max(0.0, *std::ranges::max_element(centred.high));
    bounds.high = std::max(positive, -std::min(0.0, *std::ranges::min_element(centred.low)));
    bounds.steps = input.params.isWord("steps", "auto") ? std::max<std::int64_t>(100, std::int64_t(positive / .5)) : input.params.integer("steps");
    return bounds;
}

Rewrite trialAt(const FitInput &input, const std::vector<double> &shift, const Extent &centred, double t)
{
    Rewrite trial;
    trial.input.shift = shift;
    ScaleOp scale;
    for (std::size_t k = 0; k < centred.low.size(); ++k)
        scale.divisor.push_back(std::max({1.0, centred.high[k] / t, centred.low[k] / -t}));
    trial.input.operators.push_back({std::move(scale)});
    const NumberGrid &act = input.specs.act.grid;
    if (!input.specs.act.isNone() && act.sharing == Sharing::Tensor && act.timing == Timing::Static)
        trial.clips.push_back({.target = Target::Activation, .kind = Clip::Kind::AbsoluteRange, .lo = {-t}, .hi = {t}});
    trial.fitted["t"] = t;
    return trial;
}

Expected<Rewrite> fitOsPlus(const FitInput &input)
{
    auto loss = SearchLoss::create(input, searchPart(input.params, SearchPart::Fit));
    if (!loss)
        return tl::make_unexpected(loss.error());
    const Extent extent = extentOf(input);
    std::vector<double> shift;
    Extent centred = extent;
    if (shiftWanted(input)) {
        shift = shiftOf(input, extent);
        for (std::size_t k = 0; k < shift.size(); ++k) {
            centred.low[k] -= shift[k];
            centred.high[k] -= shift[k];
        }
    }
    const Bounds bounds = boundsOf(input, centred);
    BestTrial best;
    Rewrite chosen;
    chosen.fitted["identity"] = true;
    auto identity = (*loss)(Rewrite{});
    if (!identity)
        return tl::make_unexpected(identity.error());
    best.offer("identity", std::numeric_limits<double>::quiet_NaN(), *identity);
    for (std::int64_t i = 0; bounds.high >= bounds.low && i <= bounds.steps; ++i) {
        if (!reportTrial(input, "os_plus", std::size_t(i), std::size_t(bounds.steps) + 1))
            return cancelled(input.edge->id.value);
        const double t = bounds.high - double(i) * (bounds.high - bounds.low) / double(bounds.steps);
        if (!(t > 0.0))
            break;
        Rewrite trial = trialAt(input, shift, centred, t);
        auto value = (*loss)(trial);
        if (!value)
            return tl::make_unexpected(value.error());
        if (best.offer("t=" + std::to_string(t), t, *value))
            chosen = std::move(trial);
    }
    best.store(chosen);
    chosen.specs = input.specs;
    chosen.fitted["shift"] = std::string(shift.empty() ? "off" : "on");
    return chosen;
}

} // namespace

MethodRow osPlusRow()
{
    return {.key = "os_plus",
            .label = "Outlier Suppression+",
            .source = "arXiv 2304.09145; ModelTC/Outlier_Suppression_Plus",
            .needs = {Need::Activations, Need::Weights, Need::Specs},
            .params = {enumParam("shift", {"auto", "on", "off"}, "auto: on where a bias can absorb it"),
                       enumParam("shift_stat", {"midpoint", "percentile", "ema"}, "centre of a channel"),
                       realParam("percentile", 0.5, 1, 0.001, "0.999", "of shift_stat=percentile"),
                       realParam("t_min", 1e-6, 1e6, 0.1, "auto", "smallest threshold; auto: 1.0, .1 in rmsnorm families", {"auto"}),
                       integerParam("steps", 10, 10000, "auto", "auto: max(100, int(max(X - c, 0) / .5))", {"auto"}),
                       enumParam("rows", {"all", "first_request"}, "first_request reproduces the released code"), tiesParam(), searchRowsParam()},
            .fit = fitOsPlus};
}

} // namespace planish
