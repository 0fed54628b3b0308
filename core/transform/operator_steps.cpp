#include "core/transform/operator_steps.h"

#include <cmath>

#include "core/transform/operator.h"

namespace planish {

namespace {

void applyScale(MatrixD &matrix, const ScaleStep &step, Side side)
{
    for (std::size_t r = 0; r < matrix.rows(); ++r) {
        const std::span<double> row = matrix.row(r);
        for (std::size_t k = 0; k < row.size(); ++k)
            row[k] = side == Side::Activation ? row[k] / step.divisor[k] : row[k] * step.divisor[k];
    }
}

void applyPermutation(MatrixD &matrix, const PermuteStep &step)
{
    std::vector<double> copy(matrix.cols());
    for (std::size_t r = 0; r < matrix.rows(); ++r) {
        const std::span<double> row = matrix.row(r);
        copy.assign(row.begin(), row.end());
        for (std::size_t j = 0; j < row.size(); ++j)
            row[j] = copy[static_cast<std::size_t>(step.perm[j])];
    }
}

/// Unnormalised Walsh-Hadamard transform in natural order; size is a power of two.
void walshHadamard(std::span<double> values)
{
    for (std::size_t half = 1; half < values.size(); half *= 2)
        for (std::size_t base = 0; base < values.size(); base += 2 * half)
            for (std::size_t i = base; i < base + half; ++i) {
                const double a = values[i], b = values[i + half];
                values[i] = a + b;
                values[i + half] = a - b;
            }
}

/// Z <- A Z (A^T Z when inverse), Z = reshape(values, order, size / order).
void applyTable(std::span<double> values, const Matrix<std::int8_t> &table, bool inverse, std::vector<double> &scratch)
{
    const std::size_t order = table.rows(), width = values.size() / order;
    scratch.assign(values.size(), 0.0);
    for (std::size_t i = 0; i < order; ++i)
        for (std::size_t k = 0; k < order; ++k) {
            const double sign = inverse ? table(k, i) : table(i, k);
            for (std::size_t l = 0; l < width; ++l)
                scratch[i * width + l] += sign * values[k * width + l];
        }
    std::copy(scratch.begin(), scratch.end(), values.begin());
}

void applyHadamard(MatrixD &matrix, const HadamardStep &step)
{
    const double root = std::sqrt(static_cast<double>(step.block));
    const auto applySigns = [&](std::span<double> row) {
        for (std::size_t k = 0; k < step.signs.size(); ++k)
            row[k] *= step.signs[k];
    };
    const std::size_t order = step.table.empty() ? 1 : step.table.rows();
    std::vector<double> scratch;
    for (std::size_t r = 0; r < matrix.rows(); ++r) {
        const std::span<double> row = matrix.row(r);
        if (!step.inverse)
            applySigns(row);
        for (std::size_t begin = 0; begin < row.size(); begin += step.block) {
            const std::span<double> block = row.subspan(begin, step.block);
            for (std::size_t i = 0; i < order; ++i)
                walshHadamard(block.subspan(i * (step.block / order), step.block / order));
            if (order > 1)
                applyTable(block, step.table, step.inverse, scratch);
            for (double &value : block)
                value /= root;
        }
        if (step.inverse)
            applySigns(row);
    }
}

void applyBlocks(MatrixD &matrix, const BlockDenseStep &step, Side side)
{
    const std::vector<MatrixD> &blocks = side == Side::Activation ? step.blocks : step.inverseTransposed;
    const std::size_t size = matrix.cols() / step.assignment.size();
    std::vector<double> result(size);
    for (std::size_t r = 0; r < matrix.rows(); ++r)
        for (std::size_t b = 0; b < step.assignment.size(); ++b) {
            const std::span<double> values = matrix.row(r).subspan(b * size, size);
            const MatrixD &block = blocks[static_cast<std::size_t>(step.assignment[b])];
            result.assign(size, 0.0);
            for (std::size_t i = 0; i < size; ++i)
                for (std::size_t j = 0; j < size; ++j)
                    result[j] += values[i] * block(i, j);
            std::copy(result.begin(), result.end(), values.begin());
        }
}

PermuteStep transposition(std::size_t rows, std::size_t cols)
{
    PermuteStep step;
    for (std::size_t c = 0; c < cols; ++c)
        for (std::size_t r = 0; r < rows; ++r)
            step.perm.push_back(static_cast<std::int64_t>(r * cols + c));
    return step;
}

std::vector<MatrixD> transposedAll(const std::vector<MatrixD> &matrices)
{
    std::vector<MatrixD> result;
    for (const MatrixD &matrix : matrices) {
        MatrixD &turned = result.emplace_back(matrix.cols(), matrix.rows());
        for (std::size_t r = 0; r < matrix.rows(); ++r)
            for (std::size_t c = 0; c < matrix.cols(); ++c)
                turned(c, r) = matrix(r, c);
    }
    return result;
}

/// x (P1 (x) P2): P2 on every row of Z [k1, k2], then P1 on every column, reached by transposing Z and back.
std::vector<OperatorStep> kroneckerSteps(const KroneckerOp &op)
{
    const std::size_t k1 = channelsOf(*op.first), k2 = channelsOf(*op.second);
    std::vector<OperatorStep> steps = replicated(stepsOf(*op.second), k2, k1);
    std::vector<OperatorStep> columns = replicated(stepsOf(*op.first), k1, k2);
    if (columns.empty())
        return steps;
    steps.emplace_back(transposition(k1, k2));
    steps.insert(steps.end(), columns.begin(), columns.end());
    steps.emplace_back(transposition(k2, k1));
    return steps;
}

template <class Value> void repeatInto(std::vector<Value> &values, std::size_t times)
{
    const std::vector<Value> once = values;
    for (std::size_t i = 1; i < times; ++i)
        values.insert(values.end(), once.begin(), once.end());
}

} // namespace

void applyStep(MatrixD &matrix, const OperatorStep &step, Side side)
{
    if (const auto *scale = std::get_if<ScaleStep>(&step))
        applyScale(matrix, *scale, side);
    else if (const auto *permute = std::get_if<PermuteStep>(&step))
        applyPermutation(matrix, *permute);
    else if (const auto *hadamard = std::get_if<HadamardStep>(&step))
        applyHadamard(matrix, *hadamard);
    else
        applyBlocks(matrix, std::get<BlockDenseStep>(step), side);
}

std::vector<OperatorStep> replicated(const std::vector<OperatorStep> &steps, std::size_t channels, std::size_t times)
{
    std::vector<OperatorStep> result = steps;
    for (OperatorStep &step : result) {
        if (auto *scale = std::get_if<ScaleStep>(&step))
            repeatInto(scale->divisor, times);
        else if (auto *hadamard = std::get_if<HadamardStep>(&step))
            repeatInto(hadamard->signs, times);
        else if (auto *blocks = std::get_if<BlockDenseStep>(&step))
            repeatInto(blocks->assignment, times);
        else if (auto *permute = std::get_if<PermuteStep>(&step)) {
            repeatInto(permute->perm, times);
            for (std::size_t j = channels; j < permute->perm.size(); ++j)
                permute->perm[j] += static_cast<std::int64_t>(j / channels * channels);
        }
    }
    return result;
}

std::vector<OperatorStep> stepsOf(const Operator &op)
{
    if (const auto *scale = std::get_if<ScaleOp>(&op.value))
        return {ScaleStep{scale->divisor}};
    if (const auto *permute = std::get_if<PermuteOp>(&op.value))
        return {PermuteStep{permute->perm}};
    if (const auto *hadamard = std::get_if<HadamardOp>(&op.value))
        return {HadamardStep{hadamard->block, hadamard->table, hadamard->signs, hadamard->inverse}};
    if (const auto *blocks = std::get_if<BlockDenseOp>(&op.value))
        return {BlockDenseStep{blocks->blocks, transposedAll(blocks->inverses), blocks->assignment}};
    if (const auto *kronecker = std::get_if<KroneckerOp>(&op.value))
        return kroneckerSteps(*kronecker);
    if (const auto *dense = std::get_if<DenseOp>(&op.value))
        return {BlockDenseStep{{dense->matrix}, transposedAll({dense->inverse}), {0}}};
    return {}; // identity
}

} // namespace planish
