// How the values of an edge are spread behind transforms: |X'| of held-out rows on one logarithmic axis that all share.
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "core/run/engine.h"

namespace planish {

struct ValueShapes {
    std::vector<double> edges;               ///< bins + 1, ascending, equal ratios
    std::vector<std::vector<double>> shares; ///< per transform, share of all elements in each bin
    std::vector<double> below;               ///< per transform, share of elements left of the axis (zeros included)
    std::vector<double> medians, maxima;     ///< per transform, of |X'|
    std::int64_t rows = 0;                   ///< held-out rows used
};

/// `rewrites` may hold null for the identity. Errors of edgeData; cancelled.
Expected<ValueShapes> valueShapes(const Engine &engine, const Opened &opened, const EdgeId &edge, const EvaluateOptions &options,
                                  const std::vector<std::shared_ptr<const Rewrite>> &rewrites, std::stop_token stop);

} // namespace planish
