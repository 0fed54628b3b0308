// What each kind of producer can absorb: the table of diagonal.md 0.5 and rotation.md 9.
#include <algorithm>

#include "core/graph/head_fit.h"
#include "core/graph/legality.h"
#include "core/graph/ties.h"

namespace planish {

namespace {

using Answer = std::optional<Refusal>;

const ModelInfo &modelOf(const PlacementContext &context)
{
    static const ModelInfo kNothingKnown;
    return context.model ? *context.model : kNothingKnown;
}

bool isPermutation(const Operator &op)
{
    return std::holds_alternative<PermuteOp>(op.value);
}

bool readByTiedHead(const Edge &edge, const PlacementContext &context)
{
    return modelOf(context).tiedEmbeddings && std::any_of(edge.consumers.begin(), edge.consumers.end(),
                                                          [](const Consumer &consumer) { return consumer.role == "head"; });
}

// Norms.

Answer shiftStaysAt(const Edge &edge, const NormProducer &norm, const std::vector<double> &, const PlacementContext &)
{
    if (!norm.hasBias)
        return refusalOf(edge, "norm_without_bias", norm.name.value, norm.name.value + " has no bias to hold the shift");
    return std::nullopt;
}

Answer operatorStaysAt(const Edge &edge, const NormProducer &norm, const Operator &op, const PlacementContext &context)
{
    const auto *scale = std::get_if<ScaleOp>(&op.value);
    if (!scale) {
        if (isPermutation(op))
            return refusalOf(edge, "residual_basis", norm.name.value,
                             "a permutation in front of " + norm.name.value + " belongs to the whole residual stream");
        return refusalOf(edge, "norm_gain_between", norm.name.value,
                         "the gain of " + norm.name.value + " stands between a " + nameOf(op) + " and the stream");
    }
    if (!norm.hasGain)
        return refusalOf(edge, "norm_without_scale", norm.name.value, norm.name.value + " has no gain to hold 1/s");
    if (readByTiedHead(edge, context))
        return refusalOf(edge, "tied_head", "embed",
                         "the head is the embedding table, which cannot take the factor of one reader");
    if (edge.ties.key == "rope_pair" && !equalInSets(edge.ties, scale->divisor))
        return refusalOf(edge, "rope_between", norm.name.value,
                         "the factor differs inside a RoPE pair or between heads that share a gain");
    return std::nullopt;
}

// Linears.

bool passesPositiveFactors(const std::string &between)
{
    return between == "relu";
}

bool passesEverything(const std::string &between)
{
    return between == "identity" || between == "attention";
}

std::string behind(const LinearProducer &linear)
{
    return "what stands between " + nameOf(Producer(linear)) + " and this edge (" + linear.between + ")";
}

Answer unequalRepeats(const Edge &edge, const std::string &producer)
{
    return refusalOf(edge, "gqa_repeat", producer,
                     "the factor is not repeated per key-value head, so " + producer + " cannot hold it");
}

Answer repeatsUnknown(const Edge &edge, const LinearProducer &linear)
{
    const bool grouped = linear.outputs > 0 && linear.outputs != static_cast<std::int64_t>(edge.channels);
    if (grouped && edge.ties.set.empty())
        return refusalOf(edge, "gqa_repeat", nameOf(Producer(linear)),
                         nameOf(Producer(linear)) + " has " + std::to_string(linear.outputs) + " rows for " +
                             std::to_string(edge.channels) + " channels and the heads of the model are unknown");
    return std::nullopt;
}

Answer mixing(const Edge &edge, const LinearProducer &linear, const Operator &op, const PlacementContext &context)
{
    const std::string producer = nameOf(Producer(linear));
    switch (headFit(op, edge.channels, modelOf(context))) {
    case HeadFit::PerKeyValueHead:
        return std::nullopt;
    case HeadFit::UnequalInGroup:
        return refusalOf(edge, "gqa_repeat", producer,
                         "a " + nameOf(op) + " that differs between query heads of one key-value head");
    case HeadFit::MixesHeads:
        return refusalOf(edge, "head_mixing_cannot_fold", producer,
                         "a " + nameOf(op) + " mixes heads and cannot be folded into " + producer);
    case HeadFit::Unknown:
        break;
    }
    return refusalOf(edge, "head_mixing_cannot_fold", producer,
                     "the heads of the model are unknown, so a " + nameOf(op) + " may mix them");
}

Answer shiftStaysAt(const Edge &edge, const LinearProducer &linear, const std::vector<double> &shift, const PlacementContext &)
{
    if (linear.interleaved)
        return refusalOf(edge, "fused_rows", linear.tensor.value,
                         "the rows of this producer lie interleaved in " + linear.tensor.value);
    if (!passesEverything(linear.between))
        return refusalOf(edge, "nonlinearity_between", nameOf(Producer(linear)), "a shift does not pass " + behind(linear));
    if (Answer unknown = repeatsUnknown(edge, linear))
        return unknown;
    if (!equalInSets(edge.ties, shift))
        return unequalRepeats(edge, nameOf(Producer(linear)));
    return std::nullopt;
}

Answer operatorStaysAt(const Edge &edge, const LinearProducer &linear, const Operator &op, const PlacementContext &context)
{
    const std::string producer = nameOf(Producer(linear));
    if (linear.interleaved)
        return refusalOf(edge, "fused_rows", linear.tensor.value,
                         "the rows of this producer lie interleaved in " + linear.tensor.value);
    if (const auto *scale = std::get_if<ScaleOp>(&op.value)) {
        const bool positive = std::all_of(scale->divisor.begin(), scale->divisor.end(), [](double s) { return s > 0; });
        if (!passesEverything(linear.between) && !(passesPositiveFactors(linear.between) && positive))
            return refusalOf(edge, "nonlinearity_between", producer,
                             passesPositiveFactors(linear.between) ? "ReLU passes positive factors only, one is negative"
                                                                   : "a factor does not pass " + behind(linear));
        if (Answer unknown = repeatsUnknown(edge, linear))
            return unknown;
        return equalInSets(edge.ties, scale->divisor) ? std::nullopt : unequalRepeats(edge, producer);
    }
    if (linear.between == "attention" || edge.site.starts_with("q_") || edge.site.starts_with("k_"))
        return mixing(edge, linear, op, context);
    if (isPermutation(op) && linear.between != "unknown")
        return std::nullopt; // elementwise functions keep channels
    if (linear.between == "identity")
        return std::nullopt;
    return refusalOf(edge, "nonlinearity_between", producer, "a " + nameOf(op) + " does not pass " + behind(linear));
}

// act(gate) * up.

Answer shiftStaysAt(const Edge &edge, const ElementwiseProducer &product, const std::vector<double> &, const PlacementContext &)
{
    return refusalOf(edge, "nonlinearity_between", product.up.value,
                     "a shift of " + product.up.value + " is multiplied by the gate");
}

Answer operatorStaysAt(const Edge &edge, const ElementwiseProducer &product, const Operator &op, const PlacementContext &)
{
    if (std::holds_alternative<ScaleOp>(op.value))
        return std::nullopt;
    if (isPermutation(op) && product.gate.value.empty())
        return refusalOf(edge, "consumers_not_covered", "gate",
                         "the gate rows must follow the permutation and are not in the files");
    if (isPermutation(op))
        return std::nullopt;
    return refusalOf(edge, "nonlinearity_between", product.up.value, "a " + nameOf(op) + " does not pass " + product.between);
}

// Streams and unknown producers.

Answer shiftStaysAt(const Edge &edge, const StreamProducer &stream, const std::vector<double> &, const PlacementContext &)
{
    return refusalOf(edge, "residual_reader", stream.stream.value, "every norm and shortcut reads the residual stream",
                     Refusal::Severity::Error);
}

Answer operatorStaysAt(const Edge &edge, const StreamProducer &stream, const Operator &op, const PlacementContext &)
{
    if (isDiagonal(op))
        return refusalOf(edge, "residual_reader", stream.stream.value, "every norm and shortcut reads the residual stream",
                         Refusal::Severity::Error);
    return refusalOf(edge, "residual_basis", stream.stream.value,
                     "a " + nameOf(op) + " of the residual stream is a stream candidate", Refusal::Severity::Error);
}

Answer producerUnknown(const Edge &edge, const UnknownProducer &producer)
{
    return refusalOf(edge, "producer_unknown", producer.name,
                     producer.name.empty() ? "the producer is not named" : "unknown producer " + producer.name);
}

Answer shiftStaysAt(const Edge &edge, const UnknownProducer &producer, const std::vector<double> &, const PlacementContext &)
{
    return producerUnknown(edge, producer);
}

Answer operatorStaysAt(const Edge &edge, const UnknownProducer &producer, const Operator &, const PlacementContext &)
{
    return producerUnknown(edge, producer);
}

} // namespace

std::optional<Refusal> shiftStays(const Edge &edge, const std::vector<double> &shift, const PlacementContext &context)
{
    return std::visit([&](const auto &producer) { return shiftStaysAt(edge, producer, shift, context); }, edge.producer);
}

std::optional<Refusal> operatorStays(const Edge &edge, const Operator &op, const PlacementContext &context)
{
    if (std::holds_alternative<IdentityOp>(op.value))
        return std::nullopt;
    return std::visit([&](const auto &producer) { return operatorStaysAt(edge, producer, op, context); }, edge.producer);
}

} // namespace planish
