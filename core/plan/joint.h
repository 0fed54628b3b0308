// Every edge once more after all folds: dividing v or up rows for one edge changes the weights another edge quantizes. plan.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace planish {

/// One producer fold that meets rows of a consumer of another edge.
struct RowFold {
    const Assignment *from = nullptr;
    Transform prefix;
    RowRangeOf rows; ///< of the tensor
};

/// A dump name with its rows: "layers.0.qkv_proj" and [q+kv, q+2kv).
struct NamedRows {
    std::string name;
    RowRangeOf rows;
};
/// "name" or "name[a:b]" taken apart.
NamedRows namedRows(const std::string &text);
/// The same by the name of the whole stored tensor where the family knows one: layers.0.up_proj of a fused checkpoint becomes
/// rows of layers.0.gate_up_proj, so that two folds of one tensor always meet.
NamedRows canonicalRows(const ResolvedWeights &weights, const NamedRows &named);

/// The folds of linear producers, tensor by tensor under canonical names: the producer's own rows, and gate rows that follow a
/// permutation.
std::vector<std::pair<std::string, RowFold>> producerFolds(const Assignment &assignment, const ResolvedWeights &weights);

/// Channels of the edge a transform acts on; 0 for the identity.
std::size_t channelsOf(const Transform &transform);

/// Folds every RowFold of other edges into `weight` [N, K] and `bias` ([1, N] or null), the rows [begin, begin + N) of `tensor`.
Expected<void> foldRowsOf(const std::string &tensor, std::int64_t begin, MatrixD &weight, MatrixD *bias,
                          const std::vector<std::pair<std::string, RowFold>> &folds, const ModelInfo &model);

/// Fills `joint` of every assignment with an evaluation after all folds; edges no other fold touches keep their alone block.
Expected<void> evaluateJointly(const Opened &opened, std::vector<Assignment> &assignments, const EvaluateOptions &options,
                               std::shared_ptr<const Backend> backend, std::stop_token stop, const ProgressSink &progress);

/// Joint above alone by more than 10 %: error joint_error naming the edges.
Expected<void> checkJoint(const std::vector<Assignment> &assignments, const std::string &subject);

} // namespace planish
