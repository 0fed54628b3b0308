// The basis of a plan on given weights: over checkpoint names as stored, or over dump names for a plan made without a checkpoint.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/plan/fold_map.h"

namespace planish {

enum class BasisNames {
    OfSource,   ///< checkpoint names when the weights have a checkpoint, else dump names
    DumpNames   ///< dump names even for tensors of a checkpoint
};

/// "sha256:…" over the tensors the plan changes. A tensor that several dump names share is hashed once.
Expected<std::string> basisOf(const FoldMap &map, BasisNames names);

/// Checkpoint names of the stored tensors a plan changes, sorted and unique.
std::vector<std::string> storedNames(const FoldMap &map);

/// Whether the weights are the plan's basis. Error basis_mismatch otherwise. A plan made from a dump compares values: a
/// checkpoint may hold them in another float type than the dump did.
Expected<void> checkBasis(const Plan &plan, const FoldMap &map, const std::string &subject);

} // namespace planish
