#include "core/graph/fold_sites.h"

#include <algorithm>

#include "core/graph/score_rules.h"

namespace planish {

namespace {

bool permutes(const Rewrite &rewrite, std::size_t count)
{
    return std::any_of(rewrite.input.operators.begin(), rewrite.input.operators.begin() + static_cast<std::ptrdiff_t>(count),
                       [](const Operator &op) { return std::holds_alternative<PermuteOp>(op.value); });
}

class FoldList {
public:
    FoldList(Placement &placement, const Rewrite &rewrite) : m_placement(placement), m_rewrite(rewrite) {}

    void operator()(const NormProducer &norm) { add(FusedFactor::How::NormGain, norm.name, {}, false); }
    void operator()(const LinearProducer &linear)
    {
        add(FusedFactor::How::ProducerRows, linear.tensor, linear.rows, m_placement.shiftFused && !linear.hasBias);
    }
    void operator()(const ElementwiseProducer &product)
    {
        add(FusedFactor::How::ProducerRows, product.up, product.upRows, false);
        if (permutes(m_rewrite, m_placement.fusedOperators))
            add(FusedFactor::How::ProducerRows, product.gate, {}, false);
    }
    void operator()(const StreamProducer &) {}
    void operator()(const UnknownProducer &) {}

    void add(FusedFactor::How how, const TensorName &tensor, const RowRangeOf &rows, bool createsBias)
    {
        FusedFactor factor;
        factor.how = how;
        factor.tensor = tensor;
        factor.rows = rows;
        factor.createsBias = createsBias;
        m_placement.fused.push_back(factor);
        const std::string text = textOf(tensor, rows);
        std::vector<std::string> &into = m_placement.fusedInto;
        if (std::find(into.begin(), into.end(), text) == into.end())
            into.push_back(text);
    }

private:
    Placement &m_placement;
    const Rewrite &m_rewrite;
};

/// A key without bias in attention without RoPE: softmax removes the constant W c would add (whisper).
bool biasMayStayAbsent(const Consumer &consumer, const PlacementContext &context)
{
    if (!context.family || context.family->ropeStyle != "none")
        return false;
    const auto &roles = context.family->biasFree;
    return std::find(roles.begin(), roles.end(), consumer.role) != roles.end();
}

} // namespace

std::string textOf(const TensorName &tensor, const RowRangeOf &rows)
{
    if (rows.end < 0)
        return tensor.value;
    return tensor.value + "[" + std::to_string(rows.begin) + ":" + std::to_string(rows.end) + "]";
}

void listFolds(Placement &placement, const Edge &edge, const Rewrite &rewrite, const PlacementContext &context)
{
    if (rewrite.input.isIdentity())
        return;
    FoldList list(placement, rewrite);
    if (placement.fusedOperators > 0 || placement.shiftFused)
        std::visit(list, edge.producer);
    if (isScoreSite(edge.site) && !edge.partner.value.empty() && !rewrite.input.operators.empty())
        list.add(FusedFactor::How::PartnerRows, edge.partner, {}, false);
    for (const Consumer &consumer : edge.consumers) {
        if (!rewrite.input.operators.empty())
            list.add(FusedFactor::How::ConsumerColumns, consumer.tensor, consumer.rows, false);
        const bool absent = consumer.bias.empty() && biasMayStayAbsent(consumer, context);
        if (!rewrite.input.shift.empty() && !absent)
            list.add(FusedFactor::How::ConsumerBias, consumer.tensor, consumer.rows, consumer.bias.empty());
    }
}

} // namespace planish
