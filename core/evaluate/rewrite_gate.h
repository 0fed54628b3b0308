// The gate in front of every quantizer: conditioning of P, equivalence in double on held-out rows, or the change of function
// where a method makes one. evaluation.md 6, plan.md "Equivalence thresholds".
#pragma once

#include "core/evaluate/edge_data.h"

namespace planish {

/// Fills conditioning and fp_equivalence (or function_change) of the evaluation. An error of code Refused with rule
/// `equivalence_failed` means the pair computes another function; other rules say why P is refused.
Expected<void> passGate(const Opened &opened, const EdgeData &data, Evaluation &evaluation);

} // namespace planish
