// Rows, weights and Y of one edge, loaded once; every candidate on the edge reads this and nothing else of X.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/evaluate/evaluate.h"
#include "core/methods/edge_product.h"

namespace planish {

/// What is loaded. Immutable after loading.
struct EdgeParts {
    std::shared_ptr<const Dump> dump;
    std::shared_ptr<const ResolvedWeights> weights;
    std::shared_ptr<const Backend> backend;
    Edge edge;
    DumpEdge dumpEdge;
    Split split;
    EvaluateOptions options;
    CalibrationRows calibration, fitting;
    ValidationRows validation;
    HeldOutRows heldOut;
    std::vector<std::int64_t> calibrationFileRows; ///< all of the part, before the budget
    std::vector<ConsumerWeights> consumers;
    std::vector<std::string> consumerNames;     ///< dump name, with [a:b] for a row range
    std::vector<StoredType> storedTypes;        ///< dtype the folded weights are rounded to
    std::vector<std::string> missing;           ///< consumers without weights (partial)
    std::shared_ptr<const NormParameters> norm; ///< of the producing norm, null if none or unknown
    ProductRows heldOutProduct;
    RowCounts counts;
    LoadedCounts calibrationNonFinite, heldOutNonFinite;
    std::string nonFiniteWeight; ///< first consumer with a non-finite weight, empty if none
    std::vector<std::string> notes;
};

class EdgeData {
public:
    explicit EdgeData(EdgeParts parts) : m_parts(std::move(parts)) {}
    const EdgeParts &parts() const { return m_parts; }

    /// Statistics of all calibration rows, computed at the first call. Thread-safe.
    Expected<std::shared_ptr<const Statistics>> statistics(std::stop_token stop) const;
    /// Statistics of all calibration rows behind a transform (chains).
    Expected<std::shared_ptr<const Statistics>> statisticsBehind(const Transform &transform, std::stop_token stop) const;
    /// relative_frobenius of the identity under these specs on the held-out rows, computed once per pair of specs.
    Expected<double> identityError(const SpecPair &specs, std::stop_token stop) const;

private:
    EdgeParts m_parts;
    mutable std::mutex m_mutex;
    mutable std::shared_ptr<const Statistics> m_statistics;
    mutable std::map<std::string, double> m_identity;
};

/// Systematic dimensions of the dump (evaluation.md 2) from the calibration rows of every attn_in and mlp_in edge.
Expected<std::vector<std::int64_t>> systematicOf(const Opened &opened, const EdgeParts &parts, double threshold,
                                                 double layerFraction, double positionFraction, std::stop_token stop);

} // namespace planish
