// An edge rebuilt from a manifest and a family alone, so that legality can be asked without dump or checkpoint.
#pragma once

#include <memory>
#include <vector>

#include "core/graph/edge.h"
#include "core/names/family.h"
#include "core/plan/plan.h"

namespace planish {

/// Layer and site of an edge id: "layers.2.attn_in" gives 2 and attn_in.
struct EdgeIdParts {
    std::int64_t layer = -1;
    std::string site;
};
EdgeIdParts partsOf(const EdgeId &id);

/// Channels of an assignment: from its operators, else from the model facts of the plan; 0 = unknown.
std::size_t channelsOf(const Assignment &assignment, const ModelInfo &model);

Edge edgeOf(const Assignment &assignment, const ModelInfo &model, const Family *family);

/// The family of the plan, else every family that knows all names of the plan.
std::vector<std::shared_ptr<const Family>> familiesOf(const Plan &plan, const FamilyList &families);

} // namespace planish
