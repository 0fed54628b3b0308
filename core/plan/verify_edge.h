// One edge of a verify: X' derived from the stored producer, Y' against Y in double, then the quantized error on the same rows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/evaluate/edge_data.h"
#include "core/plan/joint.h"
#include "core/plan/plan.h"

namespace planish {

struct VerifyContext {
    const Plan *plan = nullptr;
    std::shared_ptr<const Dump> dump;
    std::shared_ptr<const ResolvedWeights> in, out;
    std::shared_ptr<const Backend> backend;
    FamilyList families;
    Split split;
    bool allRows = false;                             ///< another dump: every counted row, nothing is sealed
    std::vector<std::pair<std::string, RowFold>> folds; ///< producer folds of all edges: they change what a consumer computes
};

/// Rows a verify reads on one edge.
struct VerifyRows {
    CalibrationRows calibration; ///< static ranges only
    SealedRows scored;
};
Expected<VerifyRows> loadVerifyRows(const VerifyContext &context, const DumpEdge &edge);

/// Fills everything of VerifyEdge except what the stored producer says. `counts` receives the rows used.
Expected<VerifyEdge> verifyEdge(const VerifyContext &context, const Assignment &assignment, const DumpEdge &dumpEdge, const VerifyRows &rows,
                                std::stop_token stop);

} // namespace planish
