// An opened data set: dump, optional checkpoint, resolved tensors and the completed graph. Immutable; shared by every request.
#pragma once

#include <memory>

#include "core/graph/model_graph.h"

namespace planish {

struct Opened {
    std::shared_ptr<const Dump> dump;
    std::shared_ptr<const ResolvedWeights> weights; ///< dump only when no checkpoint was given
    ModelGraph graph;
    FamilyList families;
    std::string weightsPath; ///< as given, empty = none
};

} // namespace planish
