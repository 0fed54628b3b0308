// Fits a candidate's chain: every member in the coordinates left by the one before (evaluation.md 9).
#pragma once

#include "core/evaluate/edge_data.h"

namespace planish {

struct FittedChain {
    Rewrite rewrite; ///< in original coordinates
    std::vector<FittedMember> members;
};

/// Errors of code Refused or Data say why the candidate cannot be fitted here; Usage, Cancelled and Machine are the caller's.
Expected<FittedChain> fitChain(const Opened &opened, const EdgeData &data, const Candidate &candidate, std::stop_token stop,
                               const ProgressSink &progress);

/// The specs of a candidate as a Rewrite stores them.
SpecPair specsOf(const Candidate &candidate);

} // namespace planish
