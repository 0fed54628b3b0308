// Block-diagonal Hadamard: P = I (x) H_B / sqrt(B). rotation.md 2.6; order=sequency is GSR (arXiv 2505.03810), rotation.md 7.9.
#include <algorithm>
#include <numeric>

#include "core/methods/method_rows.h"
#include "core/methods/norm_gain.h"
#include "core/methods/param_rows.h"
#include "core/methods/rotation_parts.h"
#include "core/methods/search_loss.h"
#include "core/transform/hadamard_orders.h"

namespace planish {
namespace {

/// Permutation in front of each block that puts the rows of H into the order of their sign changes.
Expected<std::vector<std::int64_t>> sequencyPermutation(std::size_t channels, std::size_t block)
{
    auto op = blockHadamardFor(block, block);
    if (!op)
        return tl::make_unexpected(op.error());
    const MatrixD h = denseOf(*op);
    std::vector<int> changes(block, 0);
    for (std::size_t r = 0; r < block; ++r)
        for (std::size_t c = 1; c < block; ++c)
            changes[r] += (h(r, c) > 0) != (h(r, c - 1) > 0);
    std::vector<std::int64_t> order(block);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::int64_t r) { return changes[std::size_t(r)]; });
    // x H[order,:] = y H with y[order[i]] = x[i].
    std::vector<std::int64_t> permutation(channels);
    for (std::size_t begin = 0; begin < channels; begin += block)
        for (std::size_t i = 0; i < block; ++i)
            permutation[begin + std::size_t(order[i])] = std::int64_t(begin + i);
    return permutation;
}

Expected<Rewrite> fitBlockHadamard(const FitInput &input)
{
    auto block = blockOf(input);
    if (!block)
        return tl::make_unexpected(block.error());
    Transform before;
    if (input.params.isWord("gain", "absorb")) {
        auto gain = absorbedGain(input);
        if (!gain)
            return tl::make_unexpected(gain.error());
        before = std::move(*gain);
    }
    if (input.params.isWord("order", "sequency")) {
        auto permutation = sequencyPermutation(input.edge->channels, *block);
        if (!permutation)
            return tl::make_unexpected(permutation.error());
        before.operators.push_back({PermuteOp{std::move(*permutation)}});
    }
    const auto build = [&](std::uint64_t seed) -> Expected<Rewrite> {
        auto op = signedBlockHadamard(input, *block, seed);
        if (!op)
            return tl::make_unexpected(op.error());
        Rewrite rewrite;
        rewrite.input = before;
        rewrite.input.operators.push_back(std::move(*op));
        rewrite.fitted["block"] = std::int64_t(*block);
        return rewrite;
    };
    return input.params.isWord("signs", "random") ? bestSeed(input, build) : build(input.seed);
}

} // namespace

MethodRow blockHadamardRow()
{
    return {.key = "block_hadamard",
            .label = "Block Hadamard",
            .source = "rotation.md 2.6; GSR: arXiv 2505.03810",
            .needs = {},
            .params = {blockParam(), signsParam(), enumParam("order", {"natural", "sequency"}, "order of the rows of H inside a block; sequency is GSR"),
                       seedsParam(), searchRowsParam(), gainParam()},
            .fit = fitBlockHadamard};
}

} // namespace planish
