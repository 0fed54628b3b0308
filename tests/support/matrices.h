// Small dense matrices for tests: literals, products, distances, random ones from the program's own engine.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "core/transform/random_stream.h"
#include "kernels/matrix_view.h"

namespace planish::test {

inline MatrixD matrixOf(std::initializer_list<std::initializer_list<double>> rows)
{
    MatrixD matrix(rows.size(), rows.begin()->size());
    std::size_t r = 0;
    for (const auto &row : rows)
        std::copy(row.begin(), row.end(), matrix.row(r++).begin());
    return matrix;
}

inline MatrixD randomMatrix(std::size_t rows, std::size_t cols, const char *id)
{
    RandomStream stream(0, "test", id);
    MatrixD matrix(rows, cols);
    for (double &value : matrix.values())
        value = stream.normal();
    return matrix;
}

inline MatrixD identityMatrix(std::size_t order)
{
    MatrixD matrix(order, order);
    for (std::size_t k = 0; k < order; ++k)
        matrix(k, k) = 1.0;
    return matrix;
}

inline MatrixD transposed(const MatrixD &a)
{
    MatrixD result(a.cols(), a.rows());
    for (std::size_t r = 0; r < a.rows(); ++r)
        for (std::size_t c = 0; c < a.cols(); ++c)
            result(c, r) = a(r, c);
    return result;
}

/// A B
inline MatrixD times(const MatrixD &a, const MatrixD &b)
{
    MatrixD result(a.rows(), b.cols());
    for (std::size_t i = 0; i < a.rows(); ++i)
        for (std::size_t k = 0; k < a.cols(); ++k)
            for (std::size_t j = 0; j < b.cols(); ++j)
                result(i, j) += a(i, k) * b(k, j);
    return result;
}

/// A B^T
inline MatrixD outputs(const MatrixD &a, const MatrixD &b)
{
    return times(a, transposed(b));
}

/// Largest absolute difference; infinite when the shapes differ or a value is not a number.
inline double distance(const MatrixD &a, const MatrixD &b)
{
    if (a.rows() != b.rows() || a.cols() != b.cols())
        return INFINITY;
    double worst = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double d = std::abs(a.data()[i] - b.data()[i]);
        worst = std::isnan(d) ? INFINITY : std::max(worst, d);
    }
    return worst;
}

/// ||A - B||_F / ||B||_F
inline double relativeDistance(const MatrixD &a, const MatrixD &b)
{
    double error = 0.0, reference = 0.0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        error += (a.data()[i] - b.data()[i]) * (a.data()[i] - b.data()[i]);
        reference += b.data()[i] * b.data()[i];
    }
    return std::sqrt(error / reference);
}

} // namespace planish::test
