// Full-width (or block fallback) randomised Hadamard rotation, R = diag(signs) H / sqrt(K). rotation.md 2 and 3.5.
#include "core/methods/method_rows.h"
#include "core/methods/norm_gain.h"
#include "core/methods/param_rows.h"
#include "core/methods/rotation_parts.h"
#include "core/methods/search_loss.h"
#include "core/transform/hadamard_orders.h"
#include "core/transform/random_stream.h"

namespace planish {
namespace {

Expected<Rewrite> fitHadamard(const FitInput &input)
{
    auto op = tableHadamard(input);
    if (!op)
        return tl::make_unexpected(op.error());
    Transform before;
    if (input.params.isWord("gain", "absorb")) {
        auto gain = absorbedGain(input);
        if (!gain)
            return tl::make_unexpected(gain.error());
        before = std::move(*gain);
    }
    const auto build = [&](std::uint64_t seed) -> Expected<Rewrite> {
        HadamardOp hadamard = std::get<HadamardOp>(op->value);
        if (input.params.isWord("signs", "random")) {
            RandomStream stream(seed, "signs" + input.purposeSuffix, input.streamId);
            hadamard.signs = randomSigns(stream, hadamard.channels);
        }
        Rewrite rewrite;
        rewrite.input = before;
        if (hadamard.block != hadamard.channels)
            rewrite.notes.push_back("block fallback: no Hadamard matrix of " + std::to_string(hadamard.channels) +
                                    " channels, blocks of " + std::to_string(hadamard.block));
        rewrite.input.operators.push_back({std::move(hadamard)});
        return rewrite;
    };
    return input.params.isWord("signs", "random") ? bestSeed(input, build) : build(input.seed);
}

} // namespace

MethodRow hadamardRow()
{
    return {.key = "hadamard",
            .label = "Hadamard rotation",
            .source = "arXiv 2404.00456 (QuaRot); rotation.md 2",
            .needs = {},
            .params = {enumParam("signs", {"random", "none"}, "random signs in front of H, from the seed; none: the bare matrix"),
                       enumParam("table", {"planish", "quarot", "compressed_tensors", "file:PATH"},
                                 "which matrix a width gets; tools differ for the same order"),
                       seedsParam(), searchRowsParam(), gainParam()},
            .fit = fitHadamard};
}

} // namespace planish
