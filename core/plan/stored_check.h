// Compares the tensors of a transformed checkpoint with what the plan makes of the original: producers within one unit in the last
// place, tensors outside the plan byte for byte. Independent of any rows.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/plan/fold_map.h"
#include "core/plan/folded_checkpoint.h"

namespace planish {

struct StoredDeviation {
    std::string tensor; ///< dump name
    std::string text;   ///< "row 17 deviates by 1 % (stored 1.01, expected 1)"
};

/// What is wrong with the stored tensors of OUT.
struct StoredCheck {
    std::map<std::string, StoredDeviation> byEdge; ///< first and largest deviation of an edge's producer
    std::vector<std::string> changed;              ///< checkpoint names outside the plan that differ, are missing or new
};

/// `map` is the plan on the original checkpoint.
Expected<StoredCheck> checkStored(const Plan &plan, const FoldMap &map, const Checkpoint &transformed);

} // namespace planish
