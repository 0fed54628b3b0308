// QuaRot (arXiv 2404.00456; spcl/QuaRot) on one edge: which of its rotations applies is decided by the site. rotation.md 3.
#include <algorithm>

#include "core/methods/clip_search.h"
#include "core/methods/method_rows.h"
#include "core/methods/norm_gain.h"
#include "core/methods/param_rows.h"
#include "core/methods/rotation_parts.h"
#include "core/methods/search_loss.h"
#include "core/methods/kernel_result.h"
#include "core/transform/hadamard_orders.h"
#include "core/transform/random_stream.h"

namespace planish {
namespace {

// Weight clip search of QuaRot's quantizer: norm 2.4, grid 100, shrink .8 (fake_quant/quant_utils.py).
constexpr double kClipNorm = 2.4, kClipShrink = .8;
constexpr std::int64_t kClipGrid = 100;

enum class Part { Residual, ValueOutput, QueryKey, Down };

std::string_view nameOf(Part part)
{
    return part == Part::Residual ? "r1" : part == Part::ValueOutput ? "vo" : part == Part::QueryKey ? "qk" : "down";
}

Expected<Part> partOf(const FitInput &input)
{
    const std::string &site = input.edge->site;
    if (site == "attn_out")
        return Part::ValueOutput;
    if (site == "mlp_down")
        return Part::Down;
    if (site == "q_post" || site == "k_post")
        return Part::QueryKey;
    if (site == "q_pre" || site == "k_pre")
        return refusal(input.edge->id.value, "a rotation in front of RoPE changes the scores", "the sites q_post and k_post", "rope_between");
    return Part::Residual;
}

bool wanted(const FitInput &input, Part part)
{
    const std::vector<std::string> parts = input.params.list("parts");
    return parts.empty() || std::ranges::find(parts, nameOf(part)) != parts.end() || std::ranges::find(parts, "all") != parts.end();
}

/// Hadamard of the head width per head, with mixing over heads where their number has a Hadamard matrix (rotation.md 3.2).
Expected<Operator> headHadamard(const FitInput &input, Rewrite &rewrite)
{
    if (input.params.isWord("heads", "full"))
        return tableHadamard(input);
    const std::size_t width = input.model ? std::size_t(input.model->headDim) : 0;
    if (width == 0 || input.edge->channels % width != 0)
        return refusal(input.edge->id.value, "the head width is unknown", "head_dim in /model or config.json", "consumers_missing");
    const std::size_t heads = input.edge->channels / width;
    auto within = blockHadamardFor(width, width);
    if (!within)
        return within;
    if (!input.params.isWord("heads", "off")) {
        if (auto across = blockHadamardFor(heads, heads); across && heads > 1) {
            KroneckerOp op{std::make_shared<const Operator>(std::move(*across)), std::make_shared<const Operator>(std::move(*within))};
            return Operator{std::move(op)};
        }
        if (input.params.isWord("heads", "required"))
            return refusal(input.edge->id.value, "no Hadamard matrix of order " + std::to_string(heads) + " exists for the heads",
                           "heads=auto, which rotates inside each head only", "divisibility");
        rewrite.notes.push_back("no Hadamard matrix of " + std::to_string(heads) + " heads: only the part inside each head is used");
    }
    return blockHadamardFor(input.edge->channels, width);
}

Expected<Operator> operatorOf(const FitInput &input, Part part, std::uint64_t seed, Rewrite &rewrite)
{
    Expected<Operator> op = part == Part::ValueOutput || part == Part::QueryKey ? headHadamard(input, rewrite) : tableHadamard(input);
    const bool random = input.params.isWord("signs", "random") || (input.params.isWord("signs", "auto") && part == Part::Residual);
    if (!op || !random)
        return op;
    auto *hadamard = std::get_if<HadamardOp>(&op->value);
    if (!hadamard)
        return op;
    RandomStream stream(seed, "signs" + input.purposeSuffix, input.streamId);
    hadamard->signs = randomSigns(stream, hadamard->channels);
    return op;
}

Expected<void> addWeightClips(const FitInput &input, Rewrite &rewrite)
{
    if (!input.params.isWord("weight_clip", "mse") || input.specs.weight.isNone())
        return {};
    for (std::size_t i = 0; i < input.consumers.size(); ++i) {
        auto w = applyToWeights(rewrite.input, input.consumers[i].weight->view());
        if (!w)
            return tl::make_unexpected(w.error());
        auto resident = input.backend->upload(w->view());
        if (!resident)
            return machineError(input.edge->id.value, resident.error().message, "memory for one weight matrix");
        auto ratios = ratiosByTensor(*input.backend, **resident, input.specs.weight.grid, kClipNorm, clipRatios(kClipGrid, kClipShrink), input.edge->id.value);
        if (!ratios)
            return tl::make_unexpected(ratios.error());
        rewrite.clips.push_back({.target = Target::Weight, .kind = Clip::Kind::Multiplier, .lo = *ratios, .hi = *ratios, .consumer = i});
    }
    return {};
}

Expected<Rewrite> fitQuarot(const FitInput &input)
{
    auto part = partOf(input);
    if (!part)
        return tl::make_unexpected(part.error());
    if (!wanted(input, *part))
        return refusal(input.edge->id.value, "parts leaves out " + std::string(nameOf(*part)), "parts that name it", "not_selected");
    Transform before;
    if (*part == Part::Residual && input.params.isWord("gain", "absorb")) {
        auto gain = absorbedGain(input);
        if (!gain)
            return tl::make_unexpected(gain.error());
        before = std::move(*gain);
    }
    Rewrite rewrite;
    rewrite.input = before;
    auto op = operatorOf(input, *part, input.seed, rewrite);
    if (!op)
        return tl::make_unexpected(op.error());
    rewrite.input.operators.push_back(std::move(*op));
    rewrite.fitted["part"] = std::string(nameOf(*part));
    if (const double clip = input.params.real("act_clip"); clip < 1.0)
        rewrite.clips.push_back(uniformClip(Target::Activation, clip));
    if (auto done = addWeightClips(input, rewrite); !done)
        return tl::make_unexpected(done.error());
    return rewrite;
}

} // namespace

MethodRow quarotRow()
{
    return {.key = "quarot",
            .label = "QuaRot",
            .source = "arXiv 2404.00456; spcl/QuaRot",
            .needs = {},
            .params = {listParam("parts", "all", "r1, vo, qk, down; the site decides which applies"),
                       enumParam("signs", {"auto", "random", "none"}, "auto: random for r1, none for the online parts"), tableParam(),
                       enumParam("heads", {"auto", "required", "off", "full"}, "mixing over heads in front of o_proj"),
                       realParam("act_clip", 0.5, 1, 0.01, "1", "factor of the activation range (paper .9)"),
                       enumParam("weight_clip", {"max", "mse"}, "mse: ratio per row by the norm 2.4 search"), gainParam("absorb")},
            .fit = fitQuarot};
}

} // namespace planish
