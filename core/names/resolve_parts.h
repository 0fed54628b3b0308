// Parts of ResolvedWeights::resolve: names of a checkpoint onto dump names, and reading one stored tensor. Private to core/names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/names/resolver.h"
#include "core/names/row_expression.h"

namespace planish {

using TensorMap = std::map<std::string, ResolvedTensor>;

/// What a checkpoint holds under dump names.
struct CheckpointNames {
    TensorMap tensors;
    std::vector<std::string> unmatched, notes;
};

/// By family pattern (may be null), then by exact dump name (`wanted`: names the dump's edges speak of).
Expected<CheckpointNames> namesOfCheckpoint(const Checkpoint &checkpoint, const Family *family, const RowVariables &variables,
                                            const std::vector<std::string> &wanted, const ModelInfo &model);

/// Weights, biases and norms of a dump under dump names, parts of fused tensors included.
TensorMap namesOfDump(const DumpInfo &info, const Family *family, const RowVariables &variables);

/// Rows a pattern takes of a tensor of `shape` (oriented); the whole tensor when it states none.
Expected<RowRangeOfTensor> rowsOfPattern(const NamePattern &pattern, RowVariables variables,
                                         const std::vector<std::uint64_t> &shape, const std::string &where);
std::uint64_t rowCount(const RowRangeOfTensor &rows);

/// Dump name of a name as stored, empty when the family has no whole-tensor pattern for it.
std::string dumpNameOf(const Family &family, const std::string &stored);

/// Rows, orientation and the stacked expert taken out: [outputs, channels], a vector [1, n].
Expected<MatrixD> readResolved(const ResolvedTensor &tensor, const Dump *dump, const Checkpoint *checkpoint);

} // namespace planish
