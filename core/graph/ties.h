// Channels that must share one factor: key-value repeats of grouped attention, RoPE pairs. diagonal.md 0.5.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/edge.h"
#include "core/io/dump.h"

namespace planish {

/// Row of v_proj that channel k of attn_out reads: (h / rep) * headDim + d with rep = heads / kvHeads. Trace: 4, 2, 2 gives
/// 0,1,0,1,2,3,2,3. Empty when the numbers do not divide.
std::vector<std::int64_t> gqaRowMap(std::int64_t heads, std::int64_t kvHeads, std::int64_t headDim);

/// How the channels of one head are paired by RoPE: index of the set of channel d, `half` pairs (i, i + rotary/2), `interleaved`
/// pairs (2i, 2i+1); channels behind `rotary` are free.
std::vector<std::int64_t> ropePairs(std::int64_t headDim, std::int64_t rotary, bool interleaved);

/// Ties of an edge by its site (attn_out, q_pre, k_pre, q_post, k_post); none for every other. `sharedByHeads`: the producer is a
/// q_norm or k_norm, one gain for all heads.
Ties tiesOf(const std::string &site, std::size_t channels, const ModelInfo &model, const std::string &ropeStyle,
            bool sharedByHeads);

/// Whether `values` are equal (to 1e-12) inside every set; a free edge always is.
bool equalInSets(const Ties &ties, std::span<const double> values);

} // namespace planish
