// The graph of one opened dump: every edge completed from the family (producer, consumers, ties, other readers) and the streams.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/graph/edge.h"
#include "core/names/family.h"
#include "core/names/resolver.h"

namespace planish {

struct ModelGraph {
    std::shared_ptr<const Family> family; ///< null when no family fits
    ModelInfo model;                      ///< /model completed by config.json
    std::vector<Edge> edges;              ///< dump order
    std::vector<Stream> streams;
    std::vector<std::string> notes;
    const Edge *find(const EdgeId &id) const;
};

/// Completes edges from family and tensors found. Conflicts between config.json and /model are errors naming the field.
Expected<ModelGraph> buildGraph(const DumpInfo &dump, const ResolvedWeights &weights, const FamilyList &families);

/// Edge ids matching a glob (`*`, `?`, short forms `L28.down`); no match: Usage error with the three nearest names.
Expected<std::vector<EdgeId>> matchEdges(const ModelGraph &graph, const std::vector<std::string> &globs);

} // namespace planish
