// DuQuant (arXiv 2406.01721; Hsu1023/DuQuant): smoothing, greedy block rotation, zigzag permutation, second rotation. rotation.md 4.
#include <algorithm>

#include "core/methods/channel_factors.h"
#include "core/methods/clip_search.h"
#include "core/methods/duquant_greedy.h"
#include "core/methods/method_rows.h"
#include "core/methods/param_rows.h"
#include "core/methods/rotation_parts.h"
#include "core/transform/hadamard_orders.h"

namespace planish {
namespace {

// "clamp abs(s) >= 1e-2", rotation.md 4.2.
constexpr double kSmallestScale = 1e-2;

Operator rotationOperator(const GreedyResult &greedy, std::size_t block)
{
    BlockDenseOp op;
    op.block = block;
    op.orthogonal = true;
    op.blocks = greedy.rotations;
    for (const MatrixD &r : op.blocks)
        op.inverses.push_back(transposedMatrix(r));
    op.assignment = greedy.assignment;
    return {std::move(op)};
}

ScaleOp smoothing(const FitInput &input, Rewrite &rewrite)
{
    std::int64_t dead = 0, floored = 0;
    auto a = reducedOverTies(channelStatistic(*input.statistics, ChannelStatistic::AbsMax), input.ties, TieReduction::Max);
    auto w = reducedOverTies(weightMaxima(input.consumers), input.ties, TieReduction::Max);
    ScaleOp scale{smoothingFactors(a, w, input.params.real("alpha"), dead)};
    for (double &s : scale.divisor) {
        floored += s < kSmallestScale;
        s = std::max(s, kSmallestScale);
    }
    if (dead > 0)
        rewrite.clamps["dead_channels"] = dead;
    if (floored > 0)
        rewrite.clamps["scale_floor"] = floored;
    return scale;
}

GreedyOptions greedyOptions(const FitInput &input, std::size_t block)
{
    GreedyOptions options;
    options.block = block;
    options.steps = input.params.integer("steps");
    options.variant = input.params.isWord("variant", "paper")      ? DuquantVariant::Paper
                      : input.params.isWord("variant", "official") ? DuquantVariant::Official
                                                                   : DuquantVariant::Planish;
    options.q = input.params.isWord("q", "identity") ? DuquantQ::Identity : DuquantQ::Random;
    options.side = input.params.isWord("q_side", "left") ? DuquantQSide::Left : DuquantQSide::Right;
    return options;
}

/// Absolute maximum of every column of x.
std::vector<double> columnMaxima(ConstViewD x)
{
    std::vector<double> maxima(x.cols, 0.0);
    for (std::size_t r = 0; r < x.rows; ++r)
        for (std::size_t c = 0; c < x.cols; ++c)
            maxima[c] = std::max(maxima[c], std::abs(x(r, c)));
    return maxima;
}

void addClips(const FitInput &input, Rewrite &rewrite)
{
    if (const double clip = input.params.real("act_clip"); clip < 1.0)
        rewrite.clips.push_back(uniformClip(Target::Activation, clip));
    for (std::size_t i = 0; input.params.real("weight_clip") < 1.0 && i < input.consumers.size(); ++i)
        rewrite.clips.push_back(uniformClip(Target::Weight, input.params.real("weight_clip"), i));
}

Expected<Rewrite> fitDuquant(const FitInput &input)
{
    auto block = blockOf(input);
    if (!block)
        return tl::make_unexpected(block.error());
    const GreedyOptions options = greedyOptions(input, *block);
    RandomStream stream(input.seed, "duquant_q" + input.purposeSuffix, input.streamId);
    Rewrite rewrite;
    if (input.params.isWord("smooth", "on"))
        rewrite.input.operators.push_back({smoothing(input, rewrite)});
    MatrixD x = applyToActivations(rewrite.input, input.calibration.x().view());
    std::vector<double> steps;
    const std::int64_t permutations = input.params.integer("permutations");
    for (std::int64_t round = 0; round <= permutations; ++round) {
        if (input.stop.stop_requested())
            return cancelled(input.edge->id.value);
        Transform more;
        if (round > 0)
            more.operators.push_back({PermuteOp{zigzagPermutation(channelsDescending(columnMaxima(x.view())), *block)}});
        if (round > 0)
            x = applyToActivations(more, x.view());
        const GreedyResult greedy = greedyRotation(x.view(), options, stream);
        const Operator rotation = rotationOperator(greedy, *block);
        x = applyToActivations(Transform{{}, {rotation}}, x.view());
        more.operators.push_back(rotation);
        steps.push_back(double(*std::ranges::max_element(greedy.bestStep)));
        rewrite.input.operators.insert(rewrite.input.operators.end(), more.operators.begin(), more.operators.end());
    }
    rewrite.fitted["block"] = std::int64_t(*block);
    rewrite.fitted["best_step"] = steps;
    addClips(input, rewrite);
    return rewrite;
}

} // namespace

MethodRow duquantRow()
{
    return {.key = "duquant",
            .label = "DuQuant",
            .source = "arXiv 2406.01721; Hsu1023/DuQuant",
            .needs = {Need::Activations, Need::Weights},
            .params = {enumParam("variant", {"planish", "paper", "official"}, "which column a step works on, which peak, how many matrices (rotation.md 4.2)"),
                       blockParam(), integerParam("steps", 0, 4096, "256", "greedy steps; the best prefix is kept"),
                       integerParam("permutations", 0, 4, "1", "zigzag permutations, each followed by another rotation"),
                       enumParam("q", {"random", "identity"}, "random orthogonal part of the step matrix"),
                       enumParam("q_side", {"right", "left"}, "left keeps the first row uniform"), enumParam("smooth", {"on", "off"}, "SmoothQuant factors first"),
                       realParam("alpha", 0, 1, 0.05, "0.6", "smoothing strength"), realParam("act_clip", 0.5, 1, 0.01, "1", "factor of the activation range"),
                       realParam("weight_clip", 0.5, 1, 0.01, "1", "factor of the weight range"), tiesParam(), searchRowsParam()},
            .fit = fitDuquant};
}

} // namespace planish
