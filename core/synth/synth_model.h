// Complete tiny models of several families, as tensors under their checkpoint names, small enough for a plain forward pass.
// They exist to prove `apply`: logits before and after are compared by core/synth/reference_forward.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/io/dump.h"
#include "core/io/error.h"
#include "kernels/matrix_view.h"

namespace planish {

/// What differs between families, as far as a forward pass cares. Names are patterns with {l} (and {e}).
struct SynthShape {
    std::string family;
    bool rmsNorm = true, normBias = false, postNorm = false, parallel = false;
    int normOffset = 0;
    bool linearBias = false, keyBias = false;
    bool gated = true, rope = true, learnedPositions = false, causal = true, qkNorm = false, scaleEmbedding = false;
    int positionOffset = 0; ///< OPT stores two unused positions in front
    bool fusedQkv = false, fusedGateUp = false, inOut = false, finalNorm = true;
    int experts = 0;
    std::string activation = "silu"; ///< silu | gelu | gelu_tanh | relu
    bool alwaysTied = false;
    std::string architecture;
    std::string q, k, v, o, gate, up, down;            ///< canonical roles
    std::string attentionNorm, mlpNorm, finalNormName; ///< canonical dump names; post-norm: the norm after the block
    std::string embeddingNorm;                         ///< bert
    std::map<std::string, std::string> stored;         ///< canonical dump pattern -> checkpoint pattern (without .weight)
};

struct SynthModel {
    SynthShape shape;
    ModelInfo config;
    std::map<std::string, MatrixD> tensors; ///< checkpoint names, as stored (Conv1D [in, out], fused rows); vectors [1, n]

    /// Matrix [outputs, channels] of a canonical dump name ("layers.0.q_proj"), taken out of fused and transposed storage.
    MatrixD weight(const std::string &dumpName) const;
    /// Bias [1, n] or an empty matrix.
    MatrixD bias(const std::string &dumpName) const;
    bool has(const std::string &dumpName) const;
};

std::vector<std::string> synthFamilies();

struct SynthModelRequest {
    std::string family = "llama";
    std::int64_t layers = 2;
    bool tied = false;
    std::uint64_t seed = 0;
};
/// 2 layers, hidden 96, 6 query and 2 key-value heads of 16, ffn 160, vocabulary 64; a few gains are large on purpose.
Expected<SynthModel> makeSynthModel(const SynthModelRequest &request);

/// The canonical names of a layer's norms, in the order of the block.
std::string layerName(const std::string &pattern, std::int64_t layer, std::int64_t expert = -1);

} // namespace planish
