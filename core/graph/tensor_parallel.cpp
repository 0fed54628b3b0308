#include "core/graph/tensor_parallel.h"

#include <numeric>

#include "core/graph/legality.h"

namespace planish {

namespace {

constexpr auto kError = Refusal::Severity::Error;

/// Largest run of channels an operator mixes: whole = the full width.
std::size_t mixedWidth(const Operator &op, std::size_t channels)
{
    if (isDiagonal(op))
        return 1;
    if (const auto *hadamard = std::get_if<HadamardOp>(&op.value))
        return hadamard->block;
    if (const auto *blocks = std::get_if<BlockDenseOp>(&op.value))
        return blocks->block;
    if (const auto *kronecker = std::get_if<KroneckerOp>(&op.value))
        if (kronecker->first && kronecker->second && std::holds_alternative<IdentityOp>(kronecker->first->value))
            return channelsOf(*kronecker->second);
    return channels;
}

bool crosses(const Operator &op, std::size_t channels, std::size_t shard)
{
    if (const auto *permute = std::get_if<PermuteOp>(&op.value)) {
        for (std::size_t j = 0; j < permute->perm.size(); ++j)
            if (static_cast<std::size_t>(permute->perm[j]) / shard != j / shard)
                return true;
        return false;
    }
    const std::size_t width = mixedWidth(op, channels);
    return width == 0 || shard % width != 0;
}

void checkHeads(const Edge &edge, const ModelInfo &model, int devices, std::vector<Refusal> &faults)
{
    const bool attention =
        edge.site.starts_with("attn") || edge.site.starts_with("q_") || edge.site.starts_with("k_") || edge.site == "v";
    if (!attention)
        return;
    const auto refuse = [&](std::int64_t heads, const char *kind) {
        faults.push_back(refusalOf(
            edge, "divisibility", std::to_string(devices) + " devices",
            std::to_string(heads) + " " + kind + "heads do not divide over " + std::to_string(devices) + " devices", kError));
    };
    if (model.numHeads > 0 && model.numHeads % devices != 0)
        refuse(model.numHeads, "");
    // Fewer key-value heads than devices are repeated, when the devices divide evenly over them.
    else if (model.numKvHeads > 0 && model.numKvHeads % devices != 0 && devices % model.numKvHeads != 0)
        refuse(model.numKvHeads, "key-value ");
}

void checkGroups(const Edge &edge, const Rewrite &rewrite, std::size_t shard, int devices, std::vector<Refusal> &faults)
{
    if (!rewrite.specs)
        return;
    for (const QuantSpec *spec : {&rewrite.specs->act, &rewrite.specs->weight}) {
        const auto group = static_cast<std::size_t>(spec->grid.group);
        if (group > 1 && shard % group != 0) {
            faults.push_back(refusalOf(edge, "divisibility", "group " + std::to_string(group),
                                       "groups of " + std::to_string(group) + " do not divide the " + std::to_string(shard) +
                                           " channels of each of " + std::to_string(devices) + " devices",
                                       kError));
            return;
        }
    }
}

} // namespace

bool isRowParallel(const Edge &edge)
{
    return !edge.streamWritten.empty() || edge.site == "attn_out" || edge.site == "mlp_down";
}

std::vector<Refusal> tensorParallelFaults(const Edge &edge, const Rewrite &rewrite, const std::vector<Operator> &online,
                                          const PlacementContext &context)
{
    std::vector<Refusal> faults;
    const int devices = context.tensorParallel;
    if (devices <= 1)
        return faults;
    if (context.model)
        checkHeads(edge, *context.model, devices, faults);
    if (!isRowParallel(edge))
        return faults;
    if (edge.channels % static_cast<std::size_t>(devices) != 0) {
        faults.push_back(refusalOf(
            edge, "divisibility", std::to_string(devices) + " devices",
            std::to_string(edge.channels) + " channels do not divide over " + std::to_string(devices) + " devices", kError));
        return faults;
    }
    const std::size_t shard = edge.channels / static_cast<std::size_t>(devices);
    checkGroups(edge, rewrite, shard, devices, faults);
    for (const Operator &op : online)
        if (crosses(op, edge.channels, shard))
            faults.push_back(refusalOf(edge, "crosses_shards", nameOf(op),
                                       "a " + nameOf(op) + " crosses the " + std::to_string(devices) + " shards of " +
                                           std::to_string(shard) + " channels without a named communication",
                                       kError));
    return faults;
}

} // namespace planish
