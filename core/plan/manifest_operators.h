// Operators of a plan as `operators` entries of the manifest and back, exactly. plan.md "Operators".
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "core/plan/side_file.h"
#include "core/transform/operator.h"

namespace planish {

/// Shift first, then the operators in the order they act on X; arrays go to `side` under `<key>.<what>`.
nlohmann::ordered_json transformJson(const Transform &transform, const std::string &key, SideTensors &side);

enum class NegativeFactors { Refused, Allowed };

/// The same list read back. Errors name the entry: wrong kind, widths that differ, a factor of 0, a negative one where not allowed.
Transform readTransform(const YamlReader &list, SideReader &side, NegativeFactors negative);

/// SHA-256 of the +-1 block matrix (row-major I8, without signs and 1/sqrt) that acts on X, and of its inverse's (its transpose).
struct MatrixHashes {
    std::string matrix, inverse;
};
MatrixHashes hadamardHashes(const HadamardOp &op);

} // namespace planish
