// Channel scale, then a Hadamard (full or block): "RMS scale + full Hadamard" is the suggestion of rotation.md 7.1. One operator list.
#include "core/methods/channel_factors.h"
#include "core/methods/method_rows.h"
#include "core/methods/param_rows.h"
#include "core/methods/rotation_parts.h"
#include "core/methods/search_loss.h"

namespace planish {
namespace {

enum class Order { SmoothFirst, RotateFirst };

std::vector<double> factors(const FitInput &input, const Statistics &statistics, const std::vector<ConsumerWeights> &consumers, const Ties &ties,
                            std::int64_t &dead)
{
    const bool rms = input.params.isWord("stat", "rms");
    auto a = channelStatistic(statistics, rms ? ChannelStatistic::Rms : ChannelStatistic::AbsMax);
    auto w = rms ? weightRms(consumers) : weightMaxima(consumers);
    a = reducedOverTies(std::move(a), ties, TieReduction::Max);
    w = reducedOverTies(std::move(w), ties, TieReduction::Max);
    return smoothingFactors(a, w, input.params.real("alpha"), dead);
}

Expected<Operator> rotation(const FitInput &input, std::uint64_t seed)
{
    if (input.params.integer("block") == 0)
        return signedFullHadamard(input, seed);
    auto block = blockOf(input);
    if (!block)
        return tl::make_unexpected(block.error());
    return signedBlockHadamard(input, *block, seed);
}

/// Scale fitted on the rotated coordinates: X R and W R of the budgeted calibration rows.
Expected<ScaleOp> scaleAfter(const FitInput &input, const Operator &op, std::int64_t &dead)
{
    const Transform rotate{{}, {op}};
    const Statistics statistics = statisticsOf(applyToActivations(rotate, input.calibration.x().view()).view());
    std::vector<ConsumerWeights> rotated = input.consumers;
    for (ConsumerWeights &consumer : rotated) {
        auto w = applyToWeights(rotate, consumer.weight->view());
        if (!w)
            return tl::make_unexpected(w.error());
        consumer.weight = std::make_shared<const MatrixD>(std::move(*w));
    }
    return ScaleOp{factors(input, statistics, rotated, {}, dead)};
}

Expected<Rewrite> buildOne(const FitInput &input, Order order, std::uint64_t seed)
{
    auto op = rotation(input, seed);
    if (!op)
        return tl::make_unexpected(op.error());
    Rewrite rewrite;
    std::int64_t dead = 0;
    if (order == Order::SmoothFirst) {
        rewrite.input.operators.push_back({ScaleOp{factors(input, *input.statistics, input.consumers, input.ties, dead)}});
        rewrite.input.operators.push_back(std::move(*op));
    } else {
        auto scale = scaleAfter(input, *op, dead);
        if (!scale)
            return tl::make_unexpected(scale.error());
        rewrite.input.operators.push_back(std::move(*op));
        rewrite.input.operators.push_back({std::move(*scale)});
    }
    if (dead > 0)
        rewrite.clamps["dead_channels"] = dead;
    return rewrite;
}

Expected<Rewrite> fitSmoothHadamard(const FitInput &input)
{
    const Order order = input.params.isWord("order", "rotate_first") ? Order::RotateFirst : Order::SmoothFirst;
    const auto build = [&](std::uint64_t seed) { return buildOne(input, order, seed); };
    return input.params.isWord("signs", "random") ? bestSeed(input, build) : build(input.seed);
}

} // namespace

MethodRow smoothHadamardRow()
{
    return {.key = "smooth_hadamard",
            .label = "Scale + Hadamard",
            .source = "rotation.md 7.1; SmoothRot: arXiv 2506.05413",
            .needs = {Need::Activations, Need::Weights},
            .params = {enumParam("stat", {"rms", "absmax"}, "channel statistic of X and W"),
                       realParam("alpha", 0, 1, 0.05, "0.5", "smoothing strength: s = a^alpha / w^(1-alpha)"),
                       blockParam("channels per block; 0: full width"), signsParam(), tableParam(),
                       enumParam("order", {"smooth_first", "rotate_first"}, "which factor acts on X first"), tiesParam(), seedsParam(), searchRowsParam()},
            .fit = fitSmoothHadamard};
}

} // namespace planish
