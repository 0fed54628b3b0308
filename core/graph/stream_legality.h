// When a change of basis of a whole residual stream keeps the function: every writer, every reader, gains absorbed, the mean
// removed for LayerNorm models, the head untied. plan.md residual rules, rotation.md 3.1. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/graph/placement.h"

namespace planish {

/// What a stream candidate rewrites, as the plan states it. Defaults are the legal fold of an RMSNorm model.
struct StreamFold {
    enum class Kind { Rotation, Permutation, Scale } kind = Kind::Rotation;
    bool keepsOnes = false;               ///< Q 1 = 1: commutes with the mean removal of a LayerNorm, norms stay as they are
    bool gainsAbsorbed = true;            ///< norm gains (and biases) folded into the readers
    bool biasesRewritten = true;          ///< biases of the writers rotated too
    bool meanRemoved = false;             ///< by embeddings and every writer
    bool normsBecomeRms = false;          ///< norms no longer subtract the mean
    bool headUntied = true;               ///< the head is a table of its own
    std::vector<TensorName> writers;      ///< rewritten; must be the stream's
    std::vector<EdgeId> readers;          ///< rewritten
    std::vector<TensorName> otherReaders; ///< routers, shared experts rewritten with the readers
};

/// Errors with the stable rule names; the first missing writer or reader is named. `required` = routers and the like that read
/// the stream's norms.
std::vector<Refusal> streamFaults(const Stream &stream, const StreamFold &fold, const std::vector<OtherReader> &required,
                                  const PlacementContext &context);

} // namespace planish
