// Ratios of a clip search and the choice of one ratio per share of W (clip per=share). diagonal.md 3.1, 6.2.
#pragma once

#include "core/methods/search_loss.h"

namespace planish {

/// 1 - i/grid, i = 0 .. round(grid max_shrink) - 1; the full range comes first, so ties keep it.
std::vector<double> clipRatios(std::int64_t grid, double maxShrink);

/// One factor for the range of all shares of a tensor.
Clip uniformClip(Target target, double ratio, std::size_t consumer = 0);

/// Sum |xhat - x|^norm over a matrix at one ratio; per share when `perShare` is given.
Expected<double> tensorError(const Backend &backend, const Resident &matrix, const NumberGrid &grid, double norm,
                             const std::string &subject, std::vector<double> *perShare = nullptr);

/// A ratio per share by tensor error.
Expected<std::vector<double>> ratiosByTensor(const Backend &backend, const Resident &matrix, const NumberGrid &grid, double norm,
                                             const std::vector<double> &ratios, const std::string &subject);

/// A ratio per group of every row of W by the output error of that group alone: e G e^T with G = X_g^T X_g.
Expected<std::vector<double>> ratiosByGroupOutput(const Backend &backend, const MatrixD &x, const Resident &weight,
                                                  const NumberGrid &grid, const std::vector<double> &ratios,
                                                  const std::string &subject);

} // namespace planish
