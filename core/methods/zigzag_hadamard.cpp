// Zigzag permutation, then a block Hadamard: equalises the mass of the blocks first (PeRQ, arXiv 2601.22347; rotation.md 4.3, 7.9).
#include "core/methods/channel_factors.h"
#include "core/methods/method_rows.h"
#include "core/methods/param_rows.h"
#include "core/methods/rotation_parts.h"
#include "core/methods/search_loss.h"

namespace planish {
namespace {

Expected<Rewrite> fitZigzag(const FitInput &input)
{
    auto block = blockOf(input);
    if (!block)
        return tl::make_unexpected(block.error());
    const auto which = input.params.isWord("stat", "absmean") ? ChannelStatistic::AbsMean : ChannelStatistic::AbsMax;
    const std::vector<std::int64_t> order = channelsDescending(channelStatistic(*input.statistics, which));
    const std::vector<std::int64_t> permutation = zigzagPermutation(order, *block);
    const auto build = [&](std::uint64_t seed) -> Expected<Rewrite> {
        auto op = signedBlockHadamard(input, *block, seed);
        if (!op)
            return tl::make_unexpected(op.error());
        Rewrite rewrite;
        rewrite.input.operators.push_back({PermuteOp{permutation}});
        rewrite.input.operators.push_back(std::move(*op));
        rewrite.fitted["block"] = std::int64_t(*block);
        return rewrite;
    };
    return input.params.isWord("signs", "random") ? bestSeed(input, build) : build(input.seed);
}

} // namespace

MethodRow zigzagHadamardRow()
{
    return {.key = "zigzag_hadamard",
            .label = "Zigzag permutation + block Hadamard",
            .source = "arXiv 2601.22347 (PeRQ), 2406.01721 (DuQuant zigzag); rotation.md 4.3",
            .needs = {Need::Activations},
            .params = {blockParam(), signsParam(), enumParam("stat", {"absmax", "absmean"}, "channel statistic that orders the channels"), seedsParam(),
                       searchRowsParam()},
            .fit = fitZigzag};
}

} // namespace planish
