// Random orthogonal rotation, Haar distributed: QR of a Gaussian with the sign fix. rotation.md 2.5.
#include "core/methods/method_rows.h"
#include "core/methods/norm_gain.h"
#include "core/methods/param_rows.h"
#include "core/methods/rotation_parts.h"
#include "core/methods/search_loss.h"
#include "core/transform/random_orthogonal.h"

namespace planish {
namespace {

// A dense rotation of more channels needs more memory and time than it is worth (design.md "Speed and memory").
constexpr std::size_t kLargestFull = 4096;

Operator haarOperator(RandomStream &stream, std::size_t channels, std::size_t block)
{
    if (block == channels) {
        MatrixD q = randomOrthogonal(stream, channels);
        MatrixD inverse = transposedMatrix(q);
        return {DenseOp{std::move(q), std::move(inverse), true}};
    }
    BlockDenseOp op;
    op.block = block;
    op.orthogonal = true;
    for (std::size_t b = 0; b < channels / block; ++b) {
        op.blocks.push_back(randomOrthogonal(stream, block));
        op.inverses.push_back(transposedMatrix(op.blocks.back()));
        op.assignment.push_back(std::int32_t(b));
    }
    return {std::move(op)};
}

Expected<Rewrite> fitHaar(const FitInput &input)
{
    const std::size_t channels = input.edge->channels;
    auto block = blockOf(input, channels);
    if (!block)
        return tl::make_unexpected(block.error());
    if (*block > kLargestFull)
        return refusal(input.edge->id.value, "a dense rotation of " + std::to_string(*block) + " channels", "a block of at most 4096 (--set block=…)", "conditioning");
    Transform before;
    if (input.params.isWord("gain", "absorb")) {
        auto gain = absorbedGain(input);
        if (!gain)
            return tl::make_unexpected(gain.error());
        before = std::move(*gain);
    }
    return bestSeed(input, [&](std::uint64_t seed) -> Expected<Rewrite> {
        RandomStream stream(seed, "haar" + input.purposeSuffix, input.streamId);
        Rewrite rewrite;
        rewrite.input = before;
        rewrite.input.operators.push_back(haarOperator(stream, channels, *block));
        return rewrite;
    });
}

} // namespace

MethodRow haarRow()
{
    return {.key = "haar",
            .label = "Random orthogonal (Haar)",
            .source = "rotation.md 2.5; spcl/QuaRot hadamard_utils.py",
            .needs = {},
            .params = {blockParam("channels per block, each with its own matrix; 0: full width"), seedsParam(), searchRowsParam(), gainParam()},
            .fit = fitHaar};
}

} // namespace planish
