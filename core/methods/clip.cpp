// Clip search: a range smaller than the maximum, chosen by output error (or by tensor error). diagonal.md 3.1.
// A clip sets only the step; values are not clamped before the division.
#include <algorithm>
#include <cmath>

#include "core/methods/clip_search.h"
#include "core/methods/kernel_result.h"
#include "core/methods/method_rows.h"
#include "core/methods/param_rows.h"

namespace planish {
namespace {

/// The state of one fit: the loss, the grid and the clips found so far.
struct ClipFit {
    const FitInput &input;
    SearchLoss &loss;
    std::vector<double> ratios;
    Rewrite rewrite;

    bool byOutput() const { return input.params.isWord("objective", "output"); }
    bool perShare() const { return input.params.isWord("per", "share"); }
    double norm() const { return input.params.real("norm"); }
    const std::string &subject() const { return input.edge->id.value; }
};

Expected<double> lossAt(ClipFit &fit, const Clip &clip, const Resident &matrix, const QuantSpec &spec)
{
    if (fit.byOutput()) {
        Rewrite trial = fit.rewrite;
        trial.clips.push_back(clip);
        return fit.loss(trial);
    }
    NumberGrid grid = spec.grid;
    grid.clip = {ClipKind::Fixed, clip.hi.front()};
    return tensorError(*fit.input.backend, matrix, grid, fit.norm(), fit.subject());
}

/// One ratio for a whole tensor.
Expected<double> searchRatio(ClipFit &fit, Target target, std::size_t consumer, const QuantSpec &spec, const std::string &name)
{
    const Resident &matrix =
        target == Target::Activation ? *fit.loss.rows().resident : *fit.loss.rows().consumers[consumer].resident;
    BestTrial best;
    for (std::size_t i = 0; i < fit.ratios.size(); ++i) {
        if (!reportTrial(fit.input, "clip " + name, i, fit.ratios.size()))
            return cancelled(fit.subject());
        auto loss = lossAt(fit, uniformClip(target, fit.ratios[i], consumer), matrix, spec);
        if (!loss)
            return loss;
        best.offer(name + "=" + std::to_string(fit.ratios[i]), fit.ratios[i], *loss);
    }
    if (!best.any())
        return refusal(fit.subject(), "no clip ratio gave a finite error", "finite rows and weights", "non_finite_factor");
    best.store(fit.rewrite);
    return fit.ratios[best.index()];
}

/// Row sharing: every output has its own error, so all rows are searched at once.
Expected<std::vector<double>> ratiosByRowOutput(ClipFit &fit, std::size_t consumer)
{
    std::size_t first = 0;
    for (std::size_t i = 0; i < consumer; ++i)
        first += fit.loss.rows().consumers[i].weight->rows();
    const std::size_t count = fit.loss.rows().consumers[consumer].weight->rows();
    std::vector<double> best(count, 1.0), bestLoss(count, std::numeric_limits<double>::infinity());
    for (const double ratio : fit.ratios) {
        Rewrite trial = fit.rewrite;
        trial.clips.push_back(uniformClip(Target::Weight, ratio, consumer));
        auto product = fit.loss.measure(trial, fit.input.specs);
        if (!product)
            return tl::make_unexpected(product.error());
        for (std::size_t n = 0; n < count; ++n) {
            if (product->sums.outputError[first + n] < bestLoss[n]) {
                bestLoss[n] = product->sums.outputError[first + n];
                best[n] = ratio;
            }
        }
    }
    return best;
}

Expected<Clip> weightShares(ClipFit &fit, std::size_t consumer)
{
    const NumberGrid &grid = fit.input.specs.weight.grid;
    const Resident &weight = *fit.loss.rows().consumers[consumer].resident;
    auto factors = !fit.byOutput() ? ratiosByTensor(*fit.input.backend, weight, grid, fit.norm(), fit.ratios, fit.subject())
                   : grid.sharing == Sharing::Group
                       ? ratiosByGroupOutput(*fit.input.backend, *fit.loss.rows().x, weight, grid, fit.ratios, fit.subject())
                       : ratiosByRowOutput(fit, consumer);
    if (!factors)
        return tl::make_unexpected(factors.error());
    return Clip{.target = Target::Weight,
                .kind = Clip::Kind::Multiplier,
                .lo = *factors,
                .hi = *factors,
                .consumer = consumer,
                .clampsValues = false};
}

Expected<void> searchActivation(ClipFit &fit)
{
    const QuantSpec &spec = fit.input.specs.act;
    const bool oneShare = spec.grid.sharing == Sharing::Tensor;
    if (!fit.perShare() || oneShare) {
        auto ratio = searchRatio(fit, Target::Activation, 0, spec, "activation");
        if (!ratio)
            return tl::make_unexpected(ratio.error());
        fit.rewrite.clips.push_back(uniformClip(Target::Activation, *ratio));
        fit.rewrite.fitted["activation_ratio"] = *ratio;
        return {};
    }
    if (spec.grid.timing != Timing::Static)
        return refusal(fit.subject(), "per=share needs shares that exist before use, and these are found at use",
                       "a static activation spec, per=tensor, or clip=mse in the spec", "spec");
    auto factors =
        ratiosByTensor(*fit.input.backend, *fit.loss.rows().resident, spec.grid, fit.norm(), fit.ratios, fit.subject());
    if (!factors)
        return tl::make_unexpected(factors.error());
    fit.rewrite.clips.push_back({.target = Target::Activation, .kind = Clip::Kind::Multiplier, .lo = *factors, .hi = *factors});
    fit.rewrite.notes.push_back(
        "clip: channels of X are chosen by tensor error, which orders them as their own output error does");
    return {};
}

Expected<void> searchWeights(ClipFit &fit)
{
    std::vector<double> found;
    for (std::size_t i = 0; i < fit.input.consumers.size(); ++i) {
        if (fit.perShare() && fit.input.specs.weight.grid.sharing != Sharing::Tensor) {
            auto clip = weightShares(fit, i);
            if (!clip)
                return tl::make_unexpected(clip.error());
            fit.rewrite.clips.push_back(std::move(*clip));
            continue;
        }
        auto ratio = searchRatio(fit, Target::Weight, i, fit.input.specs.weight, fit.input.consumers[i].consumer.tensor.value);
        if (!ratio)
            return tl::make_unexpected(ratio.error());
        fit.rewrite.clips.push_back(uniformClip(Target::Weight, *ratio, i));
        found.push_back(*ratio);
    }
    if (!found.empty())
        fit.rewrite.fitted["weight_ratio"] = found;
    return {};
}

/// A spec that quantizes, is not a block format and leaves the range to the method.
Expected<bool> searched(const FitInput &input, const QuantSpec &spec, const char *side, Rewrite &rewrite)
{
    if (spec.isNone())
        return false;
    if (isBlockFormat(spec.grid.format))
        return refusal(input.edge->id.value, std::string("clip cannot set the range of a block format (") + side + ")",
                       "an integer or plain float format", "spec");
    if (spec.grid.clip.kind == ClipKind::Max)
        return true;
    rewrite.notes.push_back(std::string("clip: the ") + side + " spec names its own clip rule and is not searched");
    return false;
}

Expected<Rewrite> fitClip(const FitInput &input)
{
    Rewrite rewrite;
    const bool onX = !input.params.isWord("target", "weight"), onW = !input.params.isWord("target", "activation");
    const auto x = onX ? searched(input, input.specs.act, "activation", rewrite) : Expected<bool>(false);
    const auto w = onW ? searched(input, input.specs.weight, "weight", rewrite) : Expected<bool>(false);
    if (!x || !w)
        return tl::make_unexpected(x ? w.error() : x.error());
    rewrite.specs = input.specs;
    if (!*x && !*w)
        return rewrite;
    auto loss = SearchLoss::create(input, searchPart(input.params, SearchPart::Fit));
    if (!loss)
        return tl::make_unexpected(loss.error());
    ClipFit fit{input, *loss, clipRatios(input.params.integer("grid"), input.params.real("max_shrink")), std::move(rewrite)};
    if (*x)
        if (auto done = searchActivation(fit); !done)
            return tl::make_unexpected(done.error());
    if (*w)
        if (auto done = searchWeights(fit); !done)
            return tl::make_unexpected(done.error());
    return std::move(fit.rewrite);
}

} // namespace

MethodRow clipRow()
{
    return {.key = "clip",
            .label = "Clip search",
            .source = "range search by output error; diagonal.md 3.1",
            .needs = {Need::Activations, Need::Weights, Need::Specs},
            .mustBeLast = true,
            .params = {enumParam("target", {"activation", "weight", "both"},
                                 "tensors that are searched; a spec with its own clip rule keeps it"),
                       enumParam("objective", {"output", "tensor"},
                                 "loss: output error with both quantizers, or the error of the tensor itself"),
                       integerParam("grid", 2, 1000, "100", "ratios 1 - i/grid"),
                       realParam("max_shrink", 0, .99, .05, "0.8", "largest shrinking tried"),
                       realParam("norm", 1, 4, .1, "2", "exponent of the tensor objective"),
                       enumParam("per", {"tensor", "share"}, "one ratio per tensor, or one per row or group"), searchRowsParam()},
            .fit = fitClip};
}

} // namespace planish
