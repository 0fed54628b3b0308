// Token-wise clipping (arXiv 2209.13325; wimh966/outlier_suppression): per-tensor activation ranges from token extrema, coarse by
// output error, then an optional fine stage. One edge at a time: labelled edge-local. diagonal.md 3.2 and 3.3.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <Eigen/Dense>

#include "core/methods/channel_factors.h"
#include "core/methods/dense.h"
#include "core/methods/method_rows.h"
#include "core/methods/param_rows.h"
#include "core/methods/rotation_parts.h"
#include "core/methods/search_loss.h"

namespace planish {
namespace {

enum class Variant { Paper, Code, Symmetric };

struct Extrema {
    std::vector<double> high, low, magnitude; ///< per token, sorted ascending; low as stored
};

Extrema extremaOf(const MatrixD &x)
{
    Extrema e;
    for (std::size_t m = 0; m < x.rows(); ++m) {
        const auto row = x.row(m);
        e.high.push_back(*std::ranges::max_element(row));
        e.low.push_back(*std::ranges::min_element(row));
        e.magnitude.push_back(std::max(std::abs(e.high.back()), std::abs(e.low.back())));
    }
    std::ranges::sort(e.high);
    std::ranges::sort(e.low);
    std::ranges::sort(e.magnitude);
    return e;
}

std::vector<double> sortedMagnitudes(std::vector<double> values)
{
    for (double &value : values)
        value = std::abs(value);
    std::ranges::sort(values);
    return values;
}

Range rangeAt(const Extrema &e, Variant variant, double p)
{
    if (variant == Variant::Paper)
        return {linearQuantile(e.low, 1 - p), linearQuantile(e.high, p)};
    // The released code snaps to the largest observed maximum within the quantile of magnitudes, and to its mirror.
    const double up = linearQuantile(sortedMagnitudes(e.high), p), down = linearQuantile(sortedMagnitudes(e.low), p);
    Range range{e.low.back(), e.high.front()};
    for (double value : e.high)
        if (value <= up)
            range.hi = std::max(range.hi, value);
    for (double value : e.low)
        if (value >= -down)
            range.lo = std::min(range.lo, value);
    return range;
}

class TokenClip {
public:
    TokenClip(const FitInput &input, SearchLoss &loss) : m_input(input), m_loss(loss), m_exactWeights(input.specs)
    {
        m_exactWeights.weight = QuantSpec{};
        m_symmetric = !isAsymmetric(input.specs.act.grid.dialect);
    }

    Rewrite rewriteFor(Range range) const
    {
        if (m_symmetric) {
            const double bound = std::max(std::abs(range.lo), std::abs(range.hi));
            range = {-bound, bound};
        }
        Rewrite rewrite;
        rewrite.clips.push_back({.target = Target::Activation, .kind = Clip::Kind::AbsoluteRange, .lo = {range.lo}, .hi = {range.hi}});
        rewrite.fitted["lo"] = range.lo;
        rewrite.fitted["hi"] = range.hi;
        return rewrite;
    }

    Expected<double> loss(const Rewrite &rewrite) { return m_loss.underSpecs(rewrite, m_exactWeights); }

    Expected<bool> offer(const std::string &label, double parameter, Range range)
    {
        Rewrite trial = rewriteFor(range);
        auto value = loss(trial);
        if (!value)
            return tl::make_unexpected(value.error());
        const bool better = best.offer(label, parameter, *value);
        if (better) {
            chosen = std::move(trial);
            chosenRange = range;
        }
        return better;
    }

    BestTrial best;
    Rewrite chosen;
    Range chosenRange;
    bool symmetric() const { return m_symmetric; }

private:
    const FitInput &m_input;
    SearchLoss &m_loss;
    SpecPair m_exactWeights;
    bool m_symmetric = true;
};

std::vector<double> numbers(const Params &params, const std::string &name)
{
    std::vector<double> values;
    for (const std::string &word : params.list(name))
        values.push_back(std::stod(word));
    return values;
}

Expected<void> coarseByQuantile(const FitInput &input, TokenClip &clip, Variant variant)
{
    const Extrema e = extremaOf(input.calibration.x());
    std::int64_t count = input.params.integer("p_count");
    if (count == 0) {
        const int bits = bitsOf(input.specs.act.grid.format);
        count = bits == 8 ? 10 : bits == 4 ? 90 : 30;
    }
    for (std::int64_t i = 0; i < count; ++i) {
        if (!reportTrial(input, "token_clip", std::size_t(i), std::size_t(count)))
            return cancelled(input.edge->id.value);
        const double p = 1.0 - double(i) * input.params.real("p_step");
        if (p < 0.0)
            break;
        auto better = clip.offer("p=" + std::to_string(p), p, rangeAt(e, variant, p));
        if (!better)
            return tl::make_unexpected(better.error());
        if (*better)
            clip.chosen.fitted["p"] = p;
    }
    return {};
}

Expected<void> coarseByRatio(const FitInput &input, TokenClip &clip)
{
    const Extrema e = extremaOf(input.calibration.x());
    std::vector<double> bounds;
    for (double q : numbers(input.params, "quantiles"))
        bounds.push_back(linearQuantile(e.magnitude, q));
    std::ranges::sort(bounds, std::greater<>());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    for (double bound : bounds) {
        if (bound == 0.0)
            continue;
        if (auto done = clip.offer("clip=" + std::to_string(bound), bound, {-bound, bound}); !done)
            return tl::make_unexpected(done.error());
    }
    return {};
}

Expected<void> fineByGrid(const FitInput &input, TokenClip &clip)
{
    const Range coarse = clip.chosenRange;
    for (double factor : numbers(input.params, "factors")) {
        if (auto done = clip.offer("factor=" + std::to_string(factor), factor, {coarse.lo * factor, coarse.hi * factor}); !done)
            return tl::make_unexpected(done.error());
    }
    return {};
}

/// Step and zero point by gradient (LSQ+ style, straight through the rounding): dL/dstep, dL/dzero on all calibration rows.
struct Gradient {
    double step = 0, zero = 0;
};

Gradient gradientAt(const Dense &x, const Dense &gram, double step, double zero, double low, double high)
{
    Dense error(x.rows(), x.cols());
    for (Eigen::Index i = 0; i < x.size(); ++i) {
        const double code = std::clamp(std::nearbyint(x.data()[i] / step) + std::nearbyint(zero), low, high);
        error.data()[i] = step * (code - std::nearbyint(zero)) - x.data()[i];
    }
    const Dense g = error * gram * (2.0 / double(x.rows()));
    Gradient out;
    const double scale = 1.0 / std::sqrt(double(x.size()) * high);
    for (Eigen::Index i = 0; i < x.size(); ++i) {
        const double t = x.data()[i] / step, code = std::nearbyint(t) + std::nearbyint(zero);
        const bool above = code > high, below = code < low;
        out.step += scale * g.data()[i] * (above ? high - zero : below ? low - zero : std::nearbyint(t) - t);
        out.zero += scale * g.data()[i] * (above || below ? -step : 0.0);
    }
    return out;
}

/// Adam on (step, zero) with a cosine schedule to 0; every epoch's range is offered, so the best one is kept.
Expected<void> fineByAdam(const FitInput &input, TokenClip &clip)
{
    const NumberGrid &grid = input.specs.act.grid;
    const int bits = bitsOf(grid.format);
    const double high = clip.symmetric() ? std::exp2(bits - 1) - 1 : std::exp2(bits) - 1, low = clip.symmetric() ? -high : 0.0;
    const MatrixD &rows = input.calibration.x();
    const Dense x = Eigen::Map<const Dense>(rows.data(), Eigen::Index(rows.rows()), Eigen::Index(rows.cols()));
    const MatrixD w = stackedWeights(input.consumers);
    const Eigen::Map<const Dense> weights(w.data(), Eigen::Index(w.rows()), Eigen::Index(w.cols()));
    const Dense gram = weights.transpose() * weights;
    const Range start = clip.chosenRange;
    double step = clip.symmetric() ? start.hi / high : (std::max(start.hi, 0.0) - std::min(start.lo, 0.0)) / high;
    double zero = clip.symmetric() ? 0.0 : std::clamp(std::nearbyint(-std::min(start.lo, 0.0) / step), low, high);
    double firstStep = 0, secondStep = 0, firstZero = 0, secondZero = 0;
    const std::int64_t epochs = input.params.integer("epochs");
    for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
        const double rate = input.params.real("lr") * 0.5 * (1 + std::cos(std::numbers::pi * double(epoch - 1) / double(epochs)));
        const Gradient g = gradientAt(x, gram, step, zero, low, high);
        auto update = [&](double gradient, double &first, double &second) {
            first = 0.9 * first + 0.1 * gradient;
            second = 0.999 * second + 0.001 * gradient * gradient;
            const double m = first / (1 - std::pow(0.9, double(epoch))), v = second / (1 - std::pow(0.999, double(epoch)));
            return rate * m / (std::sqrt(v) + 1e-8);
        };
        step -= update(g.step, firstStep, secondStep);
        if (!clip.symmetric())
            zero = std::clamp(zero - update(g.zero, firstZero, secondZero), low, high);
        if (!(step > 0.0))
            break;
        const Range range = clip.symmetric() ? Range{-step * high, step * high} : Range{-step * std::nearbyint(zero), step * (high - std::nearbyint(zero))};
        if (auto done = clip.offer("epoch=" + std::to_string(epoch), double(epoch), range); !done)
            return tl::make_unexpected(done.error());
    }
    return {};
}

Expected<Rewrite> fitTokenClip(const FitInput &input)
{
    const NumberGrid &act = input.specs.act.grid;
    if (!isInteger(act.format) || act.sharing != Sharing::Tensor || act.timing != Timing::Static)
        return refusal(input.edge->id.value, "token_clip needs one static range for the tensor", "--act intB:tensor:static", "specs");
    auto loss = SearchLoss::create(input, searchPart(input.params, SearchPart::Fit));
    if (!loss)
        return tl::make_unexpected(loss.error());
    const Variant variant = input.params.isWord("variant", "code")        ? Variant::Code
                            : input.params.isWord("variant", "symmetric") ? Variant::Symmetric
                                                                          : Variant::Paper;
    TokenClip clip(input, *loss);
    auto coarse = variant == Variant::Symmetric ? coarseByRatio(input, clip) : coarseByQuantile(input, clip, variant);
    if (!coarse)
        return tl::make_unexpected(coarse.error());
    if (!clip.best.any())
        return refusal(input.edge->id.value, "no clip gave a finite error", "rows that are not all zero", "non_finite_factor");
    const std::string fine = input.params.word("fine");
    Expected<void> second;
    if (fine == "grid" || (fine == "auto" && variant == Variant::Symmetric))
        second = fineByGrid(input, clip);
    else if (fine == "adam")
        second = fineByAdam(input, clip);
    if (!second)
        return tl::make_unexpected(second.error());
    clip.best.store(clip.chosen);
    clip.chosen.specs = input.specs;
    clip.chosen.notes.push_back("edge-local: the published method picks one p for the whole model");
    return clip.chosen;
}

} // namespace

MethodRow tokenClipRow()
{
    return {.key = "token_clip",
            .label = "Token-wise clipping",
            .source = "arXiv 2209.13325; wimh966/outlier_suppression",
            .needs = {Need::Activations, Need::Weights, Need::Specs},
            .mustBeLast = true,
            .params = {enumParam("variant", {"paper", "code", "symmetric"}, "quantiles of token extrema; snapped magnitudes; the symmetric teaching variant", {"teaching=symmetric"}),
                       realParam("p_step", 1e-4, 0.1, 0.001, "0.01", "p_i = 1 - i p_step"),
                       integerParam("p_count", 0, 1000, "0", "0: 10, 30, 90 at 8, 6, 4 bit, else 30"),
                       enumParam("fine", {"auto", "none", "adam", "grid"}, "second stage; auto: grid for symmetric, none else"),
                       realParam("lr", 1e-7, 1e-1, 1e-6, "1e-5", "of adam"), integerParam("epochs", 0, 100, "3", "of adam"),
                       listParam("quantiles", "1,.9,.8,.7,.6,.5", "of symmetric"), listParam("factors", ".8,.85,.9,.95,1.05,1.1,1.15,1.2", "of symmetric"),
                       searchRowsParam()},
            .fit = fitTokenClip};
}

} // namespace planish
