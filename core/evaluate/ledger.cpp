#include "core/evaluate/ledger.h"

#include <cmath>
#include <numeric>

namespace planish {
namespace {

template <class... Cases> struct Overloaded : Cases... {
    using Cases::operator()...;
};
template <class... Cases> Overloaded(Cases...) -> Overloaded<Cases...>;

double square(std::size_t value)
{
    return static_cast<double>(value) * static_cast<double>(value);
}

double weightBits(const Rewrite &rewrite, const QuantSpec &weight, const LedgerShape &shape)
{
    const auto channels = static_cast<double>(shape.channels);
    const double code = weight.isNone() ? 16 : bitsOf(weight.grid.format);
    const bool exactWeights = rewrite.exceptions && rewrite.exceptions->weight != Precision::Quantized;
    double bits = 0, elements = 0, outputs = 0;
    for (const std::size_t n : shape.outputs) {
        const double size = static_cast<double>(n) * channels;
        bits += size * storedBits(weight, n, shape.channels);
        if (exactWeights)
            bits += shape.exceptionColumns * static_cast<double>(n) * (16 - code);
        if (rewrite.lowRank && !rewrite.lowRank->stacked)
            bits += static_cast<double>(rewrite.lowRank->rank) * (static_cast<double>(n) + channels) * 16;
        elements += size;
        outputs += static_cast<double>(n);
    }
    if (rewrite.lowRank && rewrite.lowRank->stacked)
        bits += static_cast<double>(rewrite.lowRank->rank) * (outputs + channels) * 16;
    return bits / elements;
}

} // namespace

double onlineFlops(const Operator &op)
{
    const auto channels = static_cast<double>(channelsOf(op));
    return std::visit(Overloaded{[](const IdentityOp &) { return 0.0; }, [&](const ScaleOp &) { return channels; },
                                 [](const PermuteOp &) { return 0.0; },
                                 [&](const HadamardOp &h) {
                                     const double stages = std::log2(static_cast<double>(h.sylvester));
                                     return channels * stages + (h.order > 1 ? 2 * channels * static_cast<double>(h.order) : 0.0);
                                 },
                                 [&](const BlockDenseOp &b) { return 2 * channels * static_cast<double>(b.block); },
                                 [&](const KroneckerOp &k) {
                                     const auto first = static_cast<double>(channelsOf(*k.first)),
                                                second = static_cast<double>(channelsOf(*k.second));
                                     return second * onlineFlops(*k.first) + first * onlineFlops(*k.second);
                                 },
                                 [&](const DenseOp &) { return 2 * channels * channels; }},
                      op.value);
}

double factorBytes(const Operator &op)
{
    return std::visit(Overloaded{[](const IdentityOp &) { return 0.0; },
                                 [](const ScaleOp &s) { return 2.0 * static_cast<double>(s.divisor.size()); },
                                 [](const PermuteOp &p) { return 4.0 * static_cast<double>(p.perm.size()); },
                                 [](const HadamardOp &h) {
                                     const double table = h.order > 1 ? square(h.order) : 0.0;
                                     return std::ceil((table + static_cast<double>(h.signs.size())) / 8);
                                 },
                                 [](const BlockDenseOp &b) {
                                     return 2 * static_cast<double>(b.blocks.size()) * square(b.block) +
                                            4.0 * static_cast<double>(b.assignment.size());
                                 },
                                 [](const KroneckerOp &k) { return factorBytes(*k.first) + factorBytes(*k.second); },
                                 [](const DenseOp &d) { return 2.0 * static_cast<double>(d.matrix.size()); }},
                      op.value);
}

Ledger ledgerOf(const Rewrite &rewrite, const Placement &placement, const QuantSpec &weight, const LedgerShape &shape)
{
    Ledger ledger;
    const auto channels = static_cast<double>(shape.channels);
    const double outputs = std::accumulate(shape.outputs.begin(), shape.outputs.end(), 0.0);
    ledger.weightBits = weightBits(rewrite, weight, shape);
    for (const Operator &op : placement.online) {
        ledger.onlineFlopsPerToken += onlineFlops(op);
        ledger.onlineBytesPerToken += 4 * channels; // read and written once at 2 bytes
        ledger.launches += 1;
        ledger.metadataBytes += factorBytes(op);
        ledger.online.push_back(nameOf(op));
    }
    if (rewrite.lowRank)
        ledger.onlineFlopsPerToken +=
            2 * static_cast<double>(rewrite.lowRank->rank) *
            (channels * static_cast<double>(rewrite.lowRank->stacked ? 1 : shape.outputs.size()) + outputs);
    if (rewrite.exceptions) {
        ledger.exceptionColumns = shape.exceptionColumns;
        const bool dynamic = std::holds_alternative<DynamicExceptions>(rewrite.exceptions->rule);
        ledger.onlineFlopsPerToken += 2 * outputs * shape.exceptionColumns + (dynamic ? channels : 0.0);
        ledger.onlineBytesPerToken += 2 * shape.exceptionColumns * (1 + outputs / shape.tokens);
        ledger.launches += dynamic ? 2 : 0;
        ledger.metadataBytes += dynamic ? 0.0 : 4 * shape.exceptionColumns;
    }
    ledger.fusedInto = placement.fusedInto;
    return ledger;
}

} // namespace planish
