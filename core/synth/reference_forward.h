// The forward pass of a tiny model in plain double loops: captures every edge and gives the logits. Independent of everything else
// in the program, so that it can judge what `apply` wrote.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/synth/synth_model.h"

namespace planish {

/// Rows an edge saw: one per token, or those a router sent (mixture of experts).
struct CapturedEdge {
    MatrixD values;                        ///< [rows, K]
    std::vector<std::int32_t> rowToToken;  ///< empty = every token
};

struct ForwardResult {
    MatrixD logits;                             ///< [tokens, vocabulary]; final hidden state where the family has no head
    std::map<std::string, CapturedEdge> edges;  ///< by edge id "layers.0.attn_in"
};

/// Tokens of several requests one after the other; attention never crosses a request. Shapes: ids [T], lengths sum to T.
ForwardResult referenceForward(const SynthModel &model, const std::vector<std::int32_t> &ids, const std::vector<std::int32_t> &requestLengths);

} // namespace planish
