// Whether an operator stays inside attention heads and is the same for every query head of a key-value group: what v_proj (R2)
// and scores (R3) can carry. rotation.md 8 and 9.
#pragma once

#include "core/io/dump.h"
#include "core/transform/operator.h"

namespace planish {

enum class HeadFit {
    PerKeyValueHead, ///< fits: one factor per key-value head, inside it
    UnequalInGroup,  ///< inside heads, but query heads of one group differ (gqa_repeat)
    MixesHeads,      ///< channels of different heads meet (head_mixing_cannot_fold)
    Unknown          ///< heads or head_dim are unknown
};

/// `channels` = query heads * head_dim, or key-value heads * head_dim for key edges.
HeadFit headFit(const Operator &op, std::size_t channels, const ModelInfo &model);

} // namespace planish
