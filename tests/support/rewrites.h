// Small rewrites for placement tests: scales, shifts, rotations and permutations with the ties that matter.
#pragma once

#include <cmath>
#include <numeric>

#include "core/graph/ties.h"
#include "core/transform/rewrite.h"

namespace planish::test {

/// Positive factors, all different.
inline std::vector<double> freeFactors(std::size_t channels)
{
    std::vector<double> s(channels);
    for (std::size_t k = 0; k < channels; ++k)
        s[k] = 0.5 + 0.07 * static_cast<double>(k);
    return s;
}

/// The same factor inside every tie set.
inline std::vector<double> tiedFactors(const Edge &edge)
{
    std::vector<double> s = freeFactors(edge.channels);
    for (std::size_t k = 0; k < edge.ties.set.size(); ++k)
        s[k] = 0.5 + 0.07 * static_cast<double>(edge.ties.set[k]);
    return s;
}

inline Rewrite scaleBy(std::vector<double> divisor)
{
    Rewrite rewrite;
    rewrite.input.operators.push_back({ScaleOp{std::move(divisor)}});
    return rewrite;
}

inline Rewrite shiftBy(std::vector<double> shift)
{
    Rewrite rewrite;
    rewrite.input.shift = std::move(shift);
    return rewrite;
}

/// A plane rotation of the first two channels of `size`.
inline MatrixD givens(std::size_t size, double angle)
{
    MatrixD matrix(size, size);
    for (std::size_t i = 0; i < size; ++i)
        matrix(i, i) = 1;
    matrix(0, 0) = matrix(1, 1) = std::cos(angle);
    matrix(0, 1) = -std::sin(angle);
    matrix(1, 0) = std::sin(angle);
    return matrix;
}

inline MatrixD transposed(const MatrixD &in)
{
    MatrixD out(in.cols(), in.rows());
    for (std::size_t r = 0; r < in.rows(); ++r)
        for (std::size_t c = 0; c < in.cols(); ++c)
            out(c, r) = in(r, c);
    return out;
}

inline Rewrite rotateFully(std::size_t channels)
{
    Rewrite rewrite;
    const MatrixD matrix = givens(channels, 0.3);
    rewrite.input.operators.push_back({DenseOp{matrix, transposed(matrix), true}});
    return rewrite;
}

/// One rotation per block; `blockOf` says which of two different rotations each block gets.
inline Rewrite rotateBlocks(std::size_t block, const std::vector<std::int32_t> &blockOf)
{
    BlockDenseOp op;
    op.block = block;
    op.orthogonal = true;
    for (std::size_t i = 0; i < 4; ++i) {
        op.blocks.push_back(givens(block, 0.2 + 0.3 * static_cast<double>(i)));
        op.inverses.push_back(transposed(op.blocks.back()));
    }
    op.assignment = blockOf;
    Rewrite rewrite;
    rewrite.input.operators.push_back({op});
    return rewrite;
}

inline Rewrite reverseChannels(std::size_t channels)
{
    PermuteOp op;
    op.perm.resize(channels);
    std::iota(op.perm.rbegin(), op.perm.rend(), 0);
    Rewrite rewrite;
    rewrite.input.operators.push_back({op});
    return rewrite;
}

} // namespace planish::test
