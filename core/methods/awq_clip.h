// The clip search of AWQ after scaling: a symmetric bound per row and group by the output error of that group. diagonal.md 6.2.
#pragma once

#include "core/methods/method.h"

namespace planish {

struct AwqClipOptions {
    std::int64_t grid = 20;
    double shrink = .5;
    std::int64_t rows = 512; ///< tokens sampled by stride max(1, M / rows)
};

/// Bounds of one consumer's W' [N, K], one per share of the spec in share order. x' [M, K] are the transformed calibration rows.
Expected<std::vector<double>> awqClipBounds(const Backend &backend, const MatrixD &xPrime, const MatrixD &wPrime, const NumberGrid &grid,
                                            const AwqClipOptions &options, const std::string &subject);

} // namespace planish
