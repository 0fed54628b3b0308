// Evaluate one candidate on one edge, in the order of design.md: fit, equivalence, quantize, output error, geometry, placement, ledger.
#pragma once

#include <memory>
#include <stop_token>

#include "core/evaluate/evaluation.h"
#include "core/graph/opened.h"
#include "core/io/progress.h"

namespace planish {

struct LedgerOptions {
    std::int64_t prefillTokens = 2048, batch = 1, sramKib = 164;
};

struct EvaluateOptions {
    RowRequest rows;
    bool preview = false, breakdown = false, refit = false, partial = false;
    LedgerOptions ledger;
    int tensorParallel = 1;
    std::string target;
};

/// Rows, weights and Y of one edge, loaded once and shared by every candidate evaluated on it.
class EdgeData;

/// Loads an edge for evaluation. Errors: no weights for a consumer, split impossible, non-finite X in a fit.
Expected<std::shared_ptr<const EdgeData>> loadEdgeData(const Opened &opened, const Edge &edge, const EvaluateOptions &options,
                                                       std::shared_ptr<const Backend> backend, std::stop_token stop);

/// Fits and evaluates. A refused or failed candidate is an Evaluation with that status, not an Error;
/// Errors are usage faults, cancel and machine faults.
Expected<Evaluation> evaluateCandidate(const Opened &opened, const EdgeData &data, const Candidate &candidate,
                                       const EvaluateOptions &options, std::stop_token stop, const ProgressSink &progress);

/// Evaluates an already fitted Rewrite under the candidate's specs (joint evaluation, adopted results); no fit.
Expected<Evaluation> evaluateRewrite(const Opened &opened, const EdgeData &data, const Candidate &candidate, const Rewrite &rewrite,
                                     const EvaluateOptions &options, std::stop_token stop);

/// What the data of an edge is, for views: row counts, split, file rows.
struct EdgeDataFacts {
    EdgeId edge;
    Split split;
    RowCounts rows;
    std::vector<std::int64_t> heldOutFileRows;
    std::size_t channels = 0;
};
EdgeDataFacts factsOf(const EdgeData &data);

} // namespace planish
