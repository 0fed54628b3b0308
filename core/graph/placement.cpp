#include "core/graph/placement.h"

#include <algorithm>

#include "core/graph/fold_sites.h"
#include "core/graph/legality.h"
#include "core/graph/score_rules.h"
#include "core/graph/target_capabilities.h"
#include "core/graph/tensor_parallel.h"

namespace planish {

namespace {

void append(std::vector<Refusal> &to, std::vector<Refusal> from)
{
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

/// Why nothing at all may be folded into the producer here.
std::vector<Refusal> foldBarriers(const Edge &edge, const Rewrite &rewrite, const PlacementContext &context)
{
    std::vector<Refusal> barriers = readersLeft(edge, rewrite);
    if (auto wrong = wrongProducer(edge, context))
        barriers.push_back(*wrong);
    return barriers;
}

/// What lies behind RoPE was turned after the linear that emitted it.
std::optional<Refusal> behindRope(const Edge &edge)
{
    if (edge.site != "q_post" && edge.site != "k_post")
        return std::nullopt;
    return refusalOf(edge, "rope_between", nameOf(edge.producer),
                     "RoPE stands between " + nameOf(edge.producer) + " and this edge");
}

/// The longest prefix the producer absorbs; the first thing that stays keeps everything behind it online.
void fusePrefix(Placement &placement, const Edge &edge, const Rewrite &rewrite, const PlacementContext &context)
{
    const Transform &input = rewrite.input;
    std::optional<Refusal> stays = behindRope(edge);
    const bool shifted = !input.shift.empty();
    if (!stays && shifted)
        stays = shiftStays(edge, input.shift, context);
    placement.shiftFused = shifted && !stays;
    while (!stays && placement.fusedOperators < input.operators.size()) {
        stays = operatorStays(edge, input.operators[placement.fusedOperators], context);
        if (!stays)
            ++placement.fusedOperators;
    }
    if (stays)
        placement.refusals.push_back(*stays);
}

void splitOnline(Placement &placement, const Rewrite &rewrite)
{
    const auto &operators = rewrite.input.operators;
    for (std::size_t i = placement.fusedOperators; i < operators.size(); ++i)
        if (!std::holds_alternative<IdentityOp>(operators[i].value))
            placement.online.push_back(operators[i]);
    placement.shiftStaysOnline = !rewrite.input.shift.empty() && !placement.shiftFused;
    for (const OtherReaderRewrite &reader : rewrite.otherReaders)
        if (!reader.multiply.empty())
            placement.onlineReaders.push_back(reader);
}

/// A manifest that claims a fold is wrong where this placement keeps something online.
void judgeClaim(Placement &placement)
{
    if (placement.online.empty() && !placement.shiftStaysOnline)
        return;
    for (Refusal &refusal : placement.refusals)
        refusal.severity = Refusal::Severity::Error;
}

} // namespace

bool Placement::legal() const
{
    return std::none_of(refusals.begin(), refusals.end(),
                        [](const Refusal &refusal) { return refusal.severity == Refusal::Severity::Error; });
}

Placement place(const Edge &edge, const Rewrite &rewrite, const PlacementContext &context)
{
    Placement placement;
    placement.refusals = faultsOf(edge, rewrite, context);
    if (!rewrite.input.isIdentity()) {
        if (isScoreSite(edge.site))
            append(placement.refusals, scoreFaults(edge, rewrite, context));
        std::vector<Refusal> barriers = foldBarriers(edge, rewrite, context);
        const bool open = barriers.empty() && placement.legal();
        append(placement.refusals, std::move(barriers));
        if (open)
            fusePrefix(placement, edge, rewrite, context);
        else if (std::holds_alternative<UnknownProducer>(edge.producer))
            placement.refusals.push_back(*shiftStays(edge, {}, context));
    }
    splitOnline(placement, rewrite);
    listFolds(placement, edge, rewrite, context);
    append(placement.refusals, tensorParallelFaults(edge, rewrite, placement.online, context));
    if (context.capabilities)
        append(placement.refusals, targetFaults(edge, placement, context.tensorParallel, *context.capabilities));
    if (context.foldClaimed)
        judgeClaim(placement);
    return placement;
}

} // namespace planish
