// Sums of squares of one tile of output errors, and how tiles merge in a fixed order. Shared by the CPU backends.
#pragma once

#include <vector>

#include "kernels/backend.h"

namespace planish {

/// One tile [rows, outputs] of the three terms in a backend's width; null = absent (exact side or not wanted).
template <class T> struct ErrorTerms {
    const T *activationOnly = nullptr; ///< E_X W'^T
    const T *weightOnly = nullptr;     ///< X' E_W^T, or X_q E_W^T when the cross term is not separate
    const T *cross = nullptr;          ///< E_X E_W^T
    std::size_t stride = 0;
};

/// Sums over the outputs of one tile for its rows and over its rows for its outputs.
struct TileSums {
    std::vector<double> rowError, rowReference, rowActivationOnly, rowWeightOnly, rowCross, rowDot, rowEstimate;
    std::vector<double> outputError, outputReference;
    double maxAbs = 0.0;
    std::size_t maxRow = 0, maxOutput = 0;
};

/// `reference` starts at (firstRow, firstOutput) and has the tile's size.
template <class T>
TileSums sumTile(const ErrorTerms<T> &terms, ConstViewD reference, std::size_t firstRow, std::size_t firstOutput);

/// Sized and zero for M rows and N outputs.
ResidualSums emptySums(std::size_t rows, std::size_t outputs, TermDetail detail);

/// Adds a tile; call in ascending (row tile, output tile) order, so that results do not depend on threads.
void addTile(const TileSums &tile, std::size_t firstRow, std::size_t firstOutput, ResidualSums &sums);

} // namespace planish
