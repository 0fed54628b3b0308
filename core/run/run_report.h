// The verb `report`: gathers geometry, findings, plan, proof, ledger, legality and the lines that reproduce them, writes one
// page.
#pragma once

#include "core/plan/machine_profile.h"
#include "core/report/report.h"
#include "core/run/engine.h"

namespace planish {

struct ReportRequest {
    std::string weights, planFile, out; ///< planFile empty = no plan
    std::vector<std::string> comparisons;
    RowRequest rows; ///< used where no plan states its own
    std::optional<MachineProfile> machine;
    std::string checkpoint; ///< for the hashes of check, empty = beside the plan or the weights
};

/// Everything the page says. Edges whose proof cannot be measured carry a sentence. Errors: unreadable inputs, cancelled.
Expected<ReportContent> gatherReport(const Engine &engine, const Opened &opened, const ReportRequest &request,
                                     std::stop_token stop, const ProgressSink &progress);

/// Gathers and writes `request.out` atomically; returns the files written.
Expected<std::vector<std::string>> runReport(const Engine &engine, const Opened &opened, const ReportRequest &request,
                                             std::stop_token stop, const ProgressSink &progress);

} // namespace planish
