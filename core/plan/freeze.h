// What a plan keeps of the run that made it: the chosen evaluation as an assignment, the split, the hashes of its inputs.
#pragma once

#include "core/plan/choose.h"
#include "core/plan/plan.h"

namespace planish {

/// The chosen evaluation of an edge as an assignment of the plan.
Assignment assignmentOf(const EdgeChoice &choice, const PlanOptions &options);

/// Fills source, calibration, basis and cpu. Reads every input file once for its hash.
Expected<void> freezePlan(Plan &plan, const Opened &opened, const EdgeDataFacts &facts, const PlanOptions &options);

/// "name" or "name[a:b]".
std::string rangedName(const TensorName &name, const RowRangeOf &rows);

} // namespace planish
