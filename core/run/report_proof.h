// What a report measures again with a plan's own factors: equivalence, errors, and the geometry before and behind the transform.
#pragma once

#include "core/report/report.h"
#include "core/run/engine.h"

namespace planish {

/// One edge of the plan on these rows. A fault of the data becomes the proof's note; cancel and machine faults are errors.
Expected<ReportProof> proveEdge(const Engine &engine, const Opened &opened, const Assignment &assignment,
                                const EvaluateOptions &options, std::stop_token stop);

} // namespace planish
