// Conditioning of a chain of operators from its factors: never an SVD of the [K, K] product unless a factor is itself dense.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <Eigen/SVD>

#include "core/transform/operator.h"
#include "core/transform/operator_steps.h"

namespace planish {

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Operators = std::vector<Operator>;

/// Smallest and largest singular value.
struct Interval {
    double min = 1.0, max = 1.0;
    double kappa() const { return max / min; }
    Interval operator*(const Interval &other) const { return {min * other.min, max * other.max}; }
};

Interval singularValues(const MatrixD &matrix)
{
    const Eigen::Map<const RowMajor> map(matrix.data(), static_cast<Eigen::Index>(matrix.rows()),
                                         static_cast<Eigen::Index>(matrix.cols()));
    if (!map.allFinite())
        return {0.0, std::numeric_limits<double>::infinity()};
    const Eigen::VectorXd values = Eigen::BDCSVD<Eigen::MatrixXd>(map).singularValues();
    return {values.minCoeff(), values.maxCoeff()};
}

Interval singularValues(const std::vector<MatrixD> &matrices)
{
    Interval all{std::numeric_limits<double>::infinity(), 0.0};
    for (const MatrixD &matrix : matrices) {
        const Interval one = singularValues(matrix);
        all = {std::min(all.min, one.min), std::max(all.max, one.max)};
    }
    return all;
}

/// |s| of a divisor.
Interval magnitudes(const std::vector<double> &divisor)
{
    Interval all{std::numeric_limits<double>::infinity(), 0.0};
    for (const double s : divisor)
        all = {std::min(all.min, std::abs(s)), std::max(all.max, std::abs(s))};
    return all;
}

Interval singularValues(const Operator &op)
{
    if (isOrthogonal(op))
        return {};
    if (const auto *scale = std::get_if<ScaleOp>(&op.value)) {
        const Interval s = magnitudes(scale->divisor);
        return {1.0 / s.max, 1.0 / s.min};
    }
    if (const auto *blocks = std::get_if<BlockDenseOp>(&op.value))
        return singularValues(blocks->blocks);
    if (const auto *kronecker = std::get_if<KroneckerOp>(&op.value))
        return singularValues(*kronecker->first) * singularValues(*kronecker->second);
    return singularValues(std::get<DenseOp>(op.value).matrix);
}

/// The divisors of a run of scales and permutations, in the coordinates it starts from; null if it holds anything else.
std::optional<std::vector<double>> asDiagonal(const Operators &run)
{
    std::optional<std::vector<double>> total;
    std::vector<std::size_t> origin; ///< channel of the start that each current channel came from
    for (const Operator &op : run) {
        if (!total) {
            total.emplace(channelsOf(op), 1.0);
            for (std::size_t k = 0; k < total->size(); ++k)
                origin.push_back(k);
        }
        if (const auto *scale = std::get_if<ScaleOp>(&op.value)) {
            for (std::size_t k = 0; k < origin.size(); ++k)
                (*total)[origin[k]] *= scale->divisor[k];
        } else if (const auto *permute = std::get_if<PermuteOp>(&op.value)) {
            std::vector<std::size_t> moved(origin.size());
            for (std::size_t j = 0; j < moved.size(); ++j)
                moved[j] = origin[static_cast<std::size_t>(permute->perm[j])];
            origin = std::move(moved);
        } else if (!std::holds_alternative<IdentityOp>(op.value)) {
            return std::nullopt;
        }
    }
    return total;
}

/// Channels the operator mixes: 1 for a diagonal, its block for block operators, 0 when it reaches everywhere.
std::size_t mixingBlock(const Operator &op)
{
    if (isDiagonal(op))
        return 1;
    if (const auto *hadamard = std::get_if<HadamardOp>(&op.value))
        return hadamard->block;
    if (const auto *blocks = std::get_if<BlockDenseOp>(&op.value))
        return blocks->block;
    return 0;
}

/// Exact singular values of a run whose operators stay inside common blocks; null when they do not.
std::optional<Interval> ofCommonBlocks(const Operators &run)
{
    constexpr std::size_t kLargestBlock = 512; // an SVD per block of that size stays below a second
    std::size_t block = 1;
    for (const Operator &op : run)
        block = mixingBlock(op) == 0 ? 0 : std::max(block, mixingBlock(op));
    for (const Operator &op : run)
        if (block == 0 || block > kLargestBlock || mixingBlock(op) == 0 || block % mixingBlock(op) != 0)
            return std::nullopt;
    const std::size_t channels = channelsOf(run.front());
    MatrixD rows(block, channels); // row i holds e_i of every block: one pass through the operators builds all blocks
    for (std::size_t k = 0; k < channels; ++k)
        rows(k % block, k) = 1.0;
    for (const Operator &op : run)
        for (const OperatorStep &step : stepsOf(op))
            applyStep(rows, step, Side::Activation);
    std::vector<MatrixD> blocks;
    for (std::size_t begin = 0; begin < channels; begin += block) {
        MatrixD &one = blocks.emplace_back(block, block);
        for (std::size_t i = 0; i < block; ++i)
            std::copy_n(rows.row(i).begin() + static_cast<std::ptrdiff_t>(begin), block, one.row(i).begin());
    }
    return singularValues(blocks);
}

/// Singular values of the whole chain; orthogonal operators at both ends change nothing.
Interval ofChain(const Operators &operators, bool &isBound)
{
    const auto stretches = [](const Operator &op) { return !isOrthogonal(op); };
    const auto first = std::ranges::find_if(operators, stretches);
    if (first == operators.end())
        return {};
    const auto last = std::find_if(operators.rbegin(), operators.rend(), stretches).base();
    const Operators run(first, last);
    if (run.size() == 1)
        return singularValues(run.front());
    if (const auto diagonal = asDiagonal(run)) {
        const Interval s = magnitudes(*diagonal);
        return {1.0 / s.max, 1.0 / s.min};
    }
    if (const auto exact = ofCommonBlocks(run))
        return *exact;
    Interval bound;
    for (const Operator &op : run)
        bound = bound * singularValues(op);
    isBound = true;
    return bound;
}

/// max |A B - I|, and how far A^T A is from I when `b` is the transpose.
double distanceFromIdentity(const MatrixD &a, const MatrixD &b)
{
    const Eigen::Map<const RowMajor> left(a.data(), static_cast<Eigen::Index>(a.rows()), static_cast<Eigen::Index>(a.cols()));
    const Eigen::Map<const RowMajor> right(b.data(), static_cast<Eigen::Index>(b.rows()), static_cast<Eigen::Index>(b.cols()));
    const Eigen::MatrixXd product = left * right;
    return (product - Eigen::MatrixXd::Identity(product.rows(), product.cols())).cwiseAbs().maxCoeff();
}

double inverseResidual(const Operator &op)
{
    double worst = 0.0;
    if (const auto *scale = std::get_if<ScaleOp>(&op.value))
        for (const double s : scale->divisor)
            worst = std::max(worst, std::abs((1.0 / s) * s - 1.0));
    if (const auto *hadamard = std::get_if<HadamardOp>(&op.value)) {
        const double norm = 1.0 / std::sqrt(static_cast<double>(hadamard->block));
        worst = std::abs(norm * norm * static_cast<double>(hadamard->block) - 1.0);
    }
    if (const auto *blocks = std::get_if<BlockDenseOp>(&op.value))
        for (std::size_t b = 0; b < blocks->blocks.size(); ++b)
            worst = std::max(worst, distanceFromIdentity(blocks->blocks[b], blocks->inverses[b]));
    if (const auto *kronecker = std::get_if<KroneckerOp>(&op.value))
        worst = std::max(inverseResidual(*kronecker->first), inverseResidual(*kronecker->second));
    if (const auto *dense = std::get_if<DenseOp>(&op.value))
        worst = distanceFromIdentity(dense->matrix, dense->inverse);
    return worst;
}

/// max |R^T R - I| of an operator that claims to be orthogonal.
double orthogonalityResidual(const Operator &op)
{
    const auto ofMatrix = [](const MatrixD &matrix) {
        MatrixD turned(matrix.cols(), matrix.rows());
        for (std::size_t r = 0; r < matrix.rows(); ++r)
            for (std::size_t c = 0; c < matrix.cols(); ++c)
                turned(c, r) = matrix(r, c);
        return distanceFromIdentity(turned, matrix);
    };
    if (!isOrthogonal(op))
        return 0.0;
    double worst = 0.0;
    if (const auto *blocks = std::get_if<BlockDenseOp>(&op.value))
        for (const MatrixD &block : blocks->blocks)
            worst = std::max(worst, ofMatrix(block));
    else if (const auto *dense = std::get_if<DenseOp>(&op.value))
        worst = ofMatrix(dense->matrix);
    else if (const auto *kronecker = std::get_if<KroneckerOp>(&op.value))
        worst = std::max(orthogonalityResidual(*kronecker->first), orthogonalityResidual(*kronecker->second));
    else
        worst = inverseResidual(op); // signs and +-1 tables: only the normalisation rounds
    return worst;
}

} // namespace

Conditioning Transform::conditioning() const
{
    Conditioning result;
    const Interval whole = ofChain(operators, result.kappaIsBound);
    result.sigmaMin = whole.min;
    result.sigmaMax = whole.max;
    result.kappa = whole.kappa();

    Operators mixing;
    Operators scales;
    for (const Operator &op : operators)
        (std::holds_alternative<ScaleOp>(op.value) ? scales : mixing).push_back(op);
    bool nonDiagonalIsBound = false;
    result.kappaNonDiagonal = ofChain(mixing, nonDiagonalIsBound).kappa();

    Interval diagonal;
    for (const Operator &op : scales)
        diagonal = diagonal * magnitudes(std::get<ScaleOp>(op.value).divisor);
    if (const auto exact = asDiagonal(operators); exact && !scales.empty())
        diagonal = magnitudes(*exact);
    result.scaleMin = diagonal.min;
    result.scaleMax = diagonal.max;

    for (const Operator &op : operators) {
        result.inverseResidual = std::max(result.inverseResidual, inverseResidual(op));
        result.orthogonalityResidual = std::max(result.orthogonalityResidual, orthogonalityResidual(op));
    }
    return result;
}

} // namespace planish
