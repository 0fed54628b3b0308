// One scan over the weights that read an edge: per-channel maxima and energies over all consumers, outlying weights, and the
// largest output of a down projection. Each consumer's matrix is read once and dropped.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/geometry/findings.h"

namespace planish {

/// A weight far outside its row, or the largest of a column far above the others. Row and column of the consumer's matrix.
struct WeightOutlier {
    std::string consumer;
    std::int64_t row = 0, column = 0;
    double weight = 0, ratio = 0; ///< in row standard deviations, or column maximum over the median column maximum
    bool wholeColumn = false;
};

/// Largest |x| or |y| of one unit of rows.
struct UnitExtreme {
    std::int64_t fileRow = -1, channel = -1;
    double value = 0;
};
struct OutputExtremes {
    std::string consumer;
    std::vector<UnitExtreme> units; ///< |Y| per unit (one entry without units)
    MatrixD weightRows;             ///< rows of W at units[u].channel, [units, K]
};

struct EdgeWeights {
    std::vector<double> maxAbs, energy; ///< [K] over all present consumers; empty when none is present
    std::vector<WeightOutlier> outliers;
    std::vector<UnitExtreme> inputs;     ///< |X| per unit, only where outputs were wanted
    std::vector<OutputExtremes> outputs; ///< site mlp_down with an input above super_weight_candidate.input
    std::vector<std::string> missing;    ///< consumers without weights
};

/// Needs `statistics.token`. Errors of the files, or cancelled.
Expected<EdgeWeights> scanEdgeWeights(const Opened &opened, const Edge &edge, const Statistics &statistics,
                                      const RuleThresholds &thresholds, const RowRequest &rows, std::stop_token stop);

/// Matrix [outputs, K] of one consumer, its row range applied.
Expected<MatrixD> readConsumer(const Opened &opened, const Consumer &consumer);

} // namespace planish
