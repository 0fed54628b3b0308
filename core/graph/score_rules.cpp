// Query and key edges: what may stand in front of or behind RoPE and q_norm/k_norm. diagonal.md 0.5, rotation.md 3.2 and 8.
#include "core/graph/score_rules.h"

#include "core/graph/head_fit.h"
#include "core/graph/legality.h"
#include "core/graph/ties.h"

namespace planish {

namespace {

constexpr auto kError = Refusal::Severity::Error;

bool hasRope(const PlacementContext &context)
{
    std::string style = context.model ? context.model->ropeStyle : std::string();
    if (style.empty() && context.family)
        style = context.family->ropeStyle;
    return style != "none"; // unknown counts as RoPE: refusing is safe
}

bool normFollows(const Edge &edge, const PlacementContext &context)
{
    const bool qkNorm = (context.model && context.model->qkNorm) || (context.family && context.family->qkNorm);
    return qkNorm && std::holds_alternative<LinearProducer>(edge.producer);
}

std::optional<Refusal> beforeRope(const Edge &edge, const Operator &op, const PlacementContext &context)
{
    if (!hasRope(context))
        return std::nullopt;
    const auto *scale = std::get_if<ScaleOp>(&op.value);
    if (scale && equalInSets(edge.ties, scale->divisor))
        return std::nullopt;
    return refusalOf(edge, "rope_between", nameOf(edge.producer),
                     scale ? "the factor differs inside a RoPE pair" : "a " + nameOf(op) + " in front of RoPE", kError);
}

std::optional<Refusal> insideScores(const Edge &edge, const Operator &op, const PlacementContext &context)
{
    if (!context.model)
        return std::nullopt;
    switch (headFit(op, edge.channels, *context.model)) {
    case HeadFit::UnequalInGroup:
        return refusalOf(edge, "gqa_repeat", edge.partner.value, "query heads that share a key need the same factor", kError);
    case HeadFit::MixesHeads:
        return refusalOf(edge, "head_mixing_cannot_fold", edge.partner.value,
                         "scores are taken per head, a " + nameOf(op) + " mixes heads", kError);
    default:
        return std::nullopt;
    }
}

} // namespace

bool isScoreSite(const std::string &site)
{
    return site == "q_pre" || site == "k_pre" || site == "q_post" || site == "k_post";
}

std::vector<Refusal> scoreFaults(const Edge &edge, const Rewrite &rewrite, const PlacementContext &context)
{
    std::vector<Refusal> faults;
    const bool before = edge.site == "q_pre" || edge.site == "k_pre";
    const bool anything = !rewrite.input.operators.empty() || !rewrite.input.shift.empty();
    if (anything && before && normFollows(edge, context))
        faults.push_back(refusalOf(edge, "qk_norm_between", nameOf(edge.producer),
                                   "the norm behind " + nameOf(edge.producer) + " undoes a change of its rows", kError));
    for (const Operator &op : rewrite.input.operators) {
        if (auto fault = before ? beforeRope(edge, op, context) : std::nullopt)
            faults.push_back(*fault);
        else if (auto mixed = insideScores(edge, op, context))
            faults.push_back(*mixed);
    }
    // Softmax removes a constant per query, so a key may be shifted where nothing turns it; a query never.
    const bool harmless = edge.site.starts_with("k_") && !hasRope(context);
    if (!rewrite.input.shift.empty() && !harmless)
        faults.push_back(refusalOf(edge, edge.site.starts_with("k_") ? "rope_between" : "bias_has_no_place", edge.partner.value,
                                   "a shift of this edge changes the scores", kError));
    return faults;
}

} // namespace planish
