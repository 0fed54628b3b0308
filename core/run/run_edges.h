// Shared by evaluate, sweep and compare: whose fault an error is, and an evaluation that stands for an edge that cannot be
// loaded.
#pragma once

#include "core/run/engine.h"

namespace planish {

/// Usage, cancel and machine faults end a request; other errors belong to one edge or candidate.
bool isCallersFault(const Error &error);

/// A refused evaluation with the error's sentence.
Evaluation refusedOn(const Opened &opened, const EdgeId &edge, const Candidate &candidate, const Error &error);

} // namespace planish
