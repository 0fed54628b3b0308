// Completes one edge of a dump: producer, consumers, other readers, ties and streams, from the dump, the tensors found and the
// family.
#pragma once

#include "core/graph/edge.h"
#include "core/graph/edge_names.h"
#include "core/names/resolver.h"

namespace planish {

/// What every edge of one dump shares.
struct EdgeSources {
    const DumpInfo &dump;
    const ResolvedWeights &weights;
    const Family *family; ///< may be null
    const ModelInfo &model;
    KnownNames known;
};

Edge buildEdge(const DumpEdge &dumpEdge, const EdgeSources &sources, std::vector<std::string> &notes);

/// RoPE style of model or family; empty when neither says.
std::string ropeStyleOf(const ModelInfo &model, const Family *family);

} // namespace planish
