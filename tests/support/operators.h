// One operator of every kind, for property tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <Eigen/LU>

#include "core/transform/hadamard_orders.h"
#include "core/transform/operator.h"
#include "core/transform/random_orthogonal.h"
#include "tests/support/matrices.h"

namespace planish::test {

inline MatrixD inverseMatrix(const MatrixD &a)
{
    using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const auto order = static_cast<Eigen::Index>(a.rows());
    MatrixD result(a.rows(), a.cols());
    Eigen::Map<RowMajor>(result.data(), order, order) = Eigen::Map<const RowMajor>(a.data(), order, order).inverse();
    return result;
}

/// Random nonsymmetric matrix with singular values from 1 to kappa, and its inverse.
inline DenseOp denseWithKappa(std::size_t order, double kappa, const std::string &id)
{
    RandomStream left(0, "u", id), right(0, "v", id);
    const MatrixD u = randomOrthogonal(left, order), v = randomOrthogonal(right, order);
    MatrixD scaled = u, unscaled = v;
    for (std::size_t k = 0; k < order; ++k) {
        const double sigma = order == 1 ? kappa : std::pow(kappa, static_cast<double>(k) / static_cast<double>(order - 1));
        for (std::size_t r = 0; r < order; ++r) {
            scaled(r, k) *= sigma;
            unscaled(r, k) /= sigma;
        }
    }
    return {times(scaled, transposed(v)), times(unscaled, transposed(u)), false};
}

inline Operator denseOperator(const MatrixD &matrix)
{
    return Operator{DenseOp{matrix, inverseMatrix(matrix), false}};
}

inline Operator hadamardWithSigns(std::size_t channels, std::size_t block)
{
    Operator op = *blockHadamardFor(channels, block);
    RandomStream stream(1, "signs", "operators");
    std::get<HadamardOp>(op.value).signs = randomSigns(stream, channels);
    return op;
}

/// Every kind of operator on 24 channels, nonsymmetric wherever the kind allows it.
inline std::vector<std::pair<std::string, Operator>> everyOperator()
{
    constexpr std::size_t kChannels = 24;
    ScaleOp scale;
    PermuteOp permute;
    for (std::size_t k = 0; k < kChannels; ++k) {
        scale.divisor.push_back((k % 3 == 0 ? -1.0 : 1.0) * (0.25 + static_cast<double>(k)));
        permute.perm.push_back(static_cast<std::int64_t>((k * 7 + 3) % kChannels));
    }
    BlockDenseOp blocks{6, {}, {}, {1, 0, 1, 1}, false};
    for (const char *id : {"b0", "b1"}) {
        DenseOp dense = denseWithKappa(6, 5.0, id);
        blocks.blocks.push_back(dense.matrix);
        blocks.inverses.push_back(dense.inverse);
    }
    const auto share = [](Operator op) { return std::make_shared<const Operator>(std::move(op)); };
    const auto dense = [](std::size_t order, const char *id) { return Operator{denseWithKappa(order, 4.0, id)}; };
    RandomStream stream(2, "haar", "operators");
    const MatrixD rotation = randomOrthogonal(stream, kChannels);
    return {
        {"identity", Operator{IdentityOp{kChannels}}},
        {"scale", Operator{scale}},
        {"permute", Operator{permute}},
        {"hadamard 12x2", *hadamardFor(kChannels)},
        {"hadamard signs", hadamardWithSigns(kChannels, kChannels)},
        {"block hadamard 8", hadamardWithSigns(kChannels, 8)},
        {"inverse hadamard", *inverseOf(hadamardWithSigns(kChannels, kChannels))},
        {"block dense", Operator{blocks}},
        {"kronecker", Operator{KroneckerOp{share(dense(4, "k1")), share(dense(6, "k2"))}}},
        {"kronecker hadamard identity", Operator{KroneckerOp{share(hadamardWithSigns(12, 12)), share(Operator{IdentityOp{2}})}}},
        {"kronecker of kronecker",
         Operator{
             KroneckerOp{share(Operator{KroneckerOp{share(dense(2, "q1")), share(dense(3, "q2"))}}), share(dense(4, "q3"))}}},
        {"dense", Operator{denseWithKappa(kChannels, 20.0, "d")}},
        {"rotation", Operator{DenseOp{rotation, transposed(rotation), true}}}};
}

} // namespace planish::test
