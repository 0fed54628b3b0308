#include "core/graph/head_fit.h"

#include <algorithm>

namespace planish {

namespace {

struct Heads {
    std::size_t dim = 0, repeat = 1, count = 0;
    std::size_t first(std::size_t head) const { return head / repeat * repeat; } ///< first head of its group
};

/// `same(h, f)`: head h carries what head f, the first of its group, carries.
template <class Same> HeadFit overGroups(const Heads &heads, Same same)
{
    for (std::size_t h = 0; h < heads.count; ++h)
        if (heads.first(h) != h && !same(h, heads.first(h)))
            return HeadFit::UnequalInGroup;
    return HeadFit::PerKeyValueHead;
}

HeadFit fitOf(const HadamardOp &op, const Heads &heads)
{
    if (op.block == 0 || heads.dim % op.block != 0)
        return HeadFit::MixesHeads;
    if (op.signs.empty())
        return HeadFit::PerKeyValueHead;
    return overGroups(heads, [&](std::size_t h, std::size_t first) {
        const auto at = [&](std::size_t head) { return op.signs.begin() + static_cast<std::ptrdiff_t>(head * heads.dim); };
        return std::equal(at(h), at(h) + static_cast<std::ptrdiff_t>(heads.dim), at(first));
    });
}

HeadFit fitOf(const BlockDenseOp &op, const Heads &heads)
{
    if (op.block == 0 || heads.dim % op.block != 0)
        return HeadFit::MixesHeads;
    const std::size_t perHead = heads.dim / op.block;
    return overGroups(heads, [&](std::size_t h, std::size_t first) {
        for (std::size_t i = 0; i < perHead; ++i) {
            const auto here = static_cast<std::size_t>(op.assignment[h * perHead + i]);
            const auto there = static_cast<std::size_t>(op.assignment[first * perHead + i]);
            if (here != there && !(op.blocks[here] == op.blocks[there]))
                return false;
        }
        return true;
    });
}

HeadFit fitOf(const PermuteOp &op, const Heads &heads)
{
    for (std::size_t j = 0; j < op.perm.size(); ++j)
        if (static_cast<std::size_t>(op.perm[j]) / heads.dim != j / heads.dim)
            return HeadFit::MixesHeads;
    return overGroups(heads, [&](std::size_t h, std::size_t first) {
        for (std::size_t d = 0; d < heads.dim; ++d)
            if (op.perm[h * heads.dim + d] % static_cast<std::int64_t>(heads.dim) !=
                op.perm[first * heads.dim + d] % static_cast<std::int64_t>(heads.dim))
                return false;
        return true;
    });
}

HeadFit fitOf(const KroneckerOp &op, const Heads &heads)
{
    // I (x) P is the same P on every block of its order; any other first factor mixes blocks.
    const bool inside = op.first && op.second && std::holds_alternative<IdentityOp>(op.first->value) &&
                        heads.dim % std::max<std::size_t>(channelsOf(*op.second), 1) == 0;
    return inside ? HeadFit::PerKeyValueHead : HeadFit::MixesHeads;
}

HeadFit fitOf(const DenseOp &op, const Heads &heads)
{
    return op.matrix.rows() == heads.dim && heads.count == 1 ? HeadFit::PerKeyValueHead : HeadFit::MixesHeads;
}

HeadFit fitOf(const IdentityOp &, const Heads &)
{
    return HeadFit::PerKeyValueHead;
}

HeadFit fitOf(const ScaleOp &op, const Heads &heads)
{
    return overGroups(heads, [&](std::size_t h, std::size_t first) {
        for (std::size_t d = 0; d < heads.dim; ++d)
            if (op.divisor[h * heads.dim + d] != op.divisor[first * heads.dim + d])
                return false;
        return true;
    });
}

} // namespace

HeadFit headFit(const Operator &op, std::size_t channels, const ModelInfo &model)
{
    const std::int64_t kvHeads = model.numKvHeads > 0 ? model.numKvHeads : model.numHeads;
    if (model.headDim <= 0 || kvHeads <= 0 || channels % static_cast<std::size_t>(model.headDim) != 0)
        return HeadFit::Unknown;
    Heads heads;
    heads.dim = static_cast<std::size_t>(model.headDim);
    heads.count = channels / heads.dim;
    if (heads.count % static_cast<std::size_t>(kvHeads) != 0)
        return HeadFit::Unknown;
    heads.repeat = heads.count / static_cast<std::size_t>(kvHeads);
    return std::visit([&](const auto &value) { return fitOf(value, heads); }, op.value);
}

} // namespace planish
