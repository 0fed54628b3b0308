// From a plan to tensors by dump name: which tensor receives which folds, in edge order, and what its new values are.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/names/resolver.h"
#include "core/plan/joint.h"
#include "core/plan/plan.h"

namespace planish {

/// A shift on a shortcut goes into the bias of the linear it is summed with (the third fold place).
void addSummandShifts(const Rewrite &rewrite, const std::string &linear, MatrixD &bias);

/// Folds of one plan on resolved weights. Reads tensors on demand; computes in double. The plan must outlive it.
class FoldMap {
public:
    /// Error: a tensor of the plan that the weights do not have (basis_mismatch, the first one is named).
    static Expected<FoldMap> build(const Plan &plan, std::shared_ptr<const ResolvedWeights> weights);

    /// Dump names whose stored values change (weights, gains, biases that exist), sorted.
    const std::vector<std::string> &changed() const { return m_changed; }
    /// Linears and norms that get a bias they did not have, sorted.
    const std::vector<std::string> &created() const { return m_created; }

    /// Folded values in double of a changed linear: weight [outputs, channels] and bias [1, outputs] (empty when it has none).
    struct Linear {
        MatrixD weight, bias;
    };
    Expected<Linear> linear(const std::string &name) const;
    Expected<NormParameters> norm(const std::string &name) const;
    bool isNorm(const std::string &name) const { return m_norms.contains(name); }
    const ResolvedWeights &weights() const { return *m_weights; }
    const std::shared_ptr<const ResolvedWeights> &sharedWeights() const { return m_weights; }

private:
    Expected<void> collect(const Plan &plan);
    void collectBiases();
    Expected<void> need(const Assignment &assignment, const std::string &name);
    Expected<void> foldColumns(const Assignment &assignment, std::size_t consumer, const RowRangeOf &rows, Linear &linear) const;

    const Plan *m_plan = nullptr;
    std::shared_ptr<const ResolvedWeights> m_weights;
    std::map<std::string, std::vector<const Assignment *>> m_norms;
    std::map<const Assignment *, std::vector<std::pair<std::string, RowFold>>> m_rows;
    std::map<std::string, bool> m_linears; ///< canonical name -> a shift touches its bias
    std::vector<std::string> m_changed, m_created;
};

/// Dump names a plan rewrites on these weights, sorted; the basis hash runs over them.
Expected<std::vector<std::string>> rewrittenNames(const Plan &plan, std::shared_ptr<const ResolvedWeights> weights);

} // namespace planish
