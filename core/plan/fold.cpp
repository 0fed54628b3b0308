#include "core/plan/fold.h"

#include <algorithm>
#include <cmath>

namespace planish {

namespace {

bool allDiagonal(const Transform &transform)
{
    return std::all_of(transform.operators.begin(), transform.operators.end(), isDiagonal);
}

/// Per-channel divisor of a diagonal transform.
std::vector<double> divisorsOf(const Transform &transform, std::size_t channels)
{
    std::vector<double> divisors(channels, 1.0);
    for (const Operator &op : transform.operators) {
        if (const auto *scale = std::get_if<ScaleOp>(&op.value)) {
            for (std::size_t k = 0; k < channels && k < scale->divisor.size(); ++k)
                divisors[k] *= scale->divisor[k];
        }
    }
    return divisors;
}

/// Whether all channels that read one row agree within rounding.
bool agree(double a, double b)
{
    return std::abs(a - b) <= 1e-12 * std::max({1e-300, std::abs(a), std::abs(b)});
}

tl::unexpected<Error> unequalRepeats(const std::string &subject, std::int64_t row)
{
    return refusal(subject, "row " + std::to_string(row) + " of the producer feeds channels with different factors",
                   "expected one factor per key-value channel", "gqa_repeat");
}

Expected<void> foldDiagonalRows(MatrixD &weight, MatrixD *bias, const Transform &prefix, const std::vector<std::int64_t> &rowOf,
                                const std::string &subject)
{
    const std::vector<double> divisors = divisorsOf(prefix, rowOf.size());
    std::vector<std::uint8_t> done(weight.rows());
    std::vector<std::size_t> first(weight.rows());
    for (std::size_t k = 0; k < rowOf.size(); ++k) {
        const auto row = static_cast<std::size_t>(rowOf[k]);
        if (!done[row]) {
            done[row] = 1;
            first[row] = k;
            continue;
        }
        const bool sameShift = prefix.shift.empty() || agree(prefix.shift[first[row]], prefix.shift[k]);
        if (!agree(divisors[first[row]], divisors[k]) || !sameShift)
            return unequalRepeats(subject, rowOf[k]);
    }
    for (std::size_t row = 0; row < weight.rows(); ++row) {
        if (!done[row])
            continue;
        const double divisor = divisors[first[row]];
        for (double &value : weight.row(row))
            value /= divisor;
        if (bias)
            (*bias)(0, row) = ((*bias)(0, row) - (prefix.shift.empty() ? 0.0 : prefix.shift[first[row]])) / divisor;
    }
    return {};
}

/// The columns of `expanded` [n, channels] back on rows: repeats must agree.
Expected<MatrixD> reduced(const MatrixD &expanded, const std::vector<std::int64_t> &rowOf, std::size_t rows, const std::string &subject)
{
    MatrixD out(rows, expanded.rows());
    std::vector<std::uint8_t> done(rows);
    for (std::size_t k = 0; k < rowOf.size(); ++k) {
        const auto row = static_cast<std::size_t>(rowOf[k]);
        for (std::size_t i = 0; i < expanded.rows(); ++i) {
            const double value = expanded(i, k);
            if (done[row] && std::abs(out(row, i) - value) > 1e-9 * std::max(1.0, std::abs(value)))
                return unequalRepeats(subject, rowOf[k]);
            out(row, i) = value;
        }
        done[row] = 1;
    }
    return out;
}

/// P^T M for a mixing prefix: rows become columns of a fake activation [inputs, channels], the transform acts, columns become rows.
Expected<MatrixD> mixedRows(const MatrixD &matrix, const Transform &operators, const std::vector<std::int64_t> &rowOf, const std::string &subject)
{
    MatrixD expanded(matrix.cols(), rowOf.size());
    for (std::size_t k = 0; k < rowOf.size(); ++k) {
        for (std::size_t i = 0; i < matrix.cols(); ++i)
            expanded(i, k) = matrix(static_cast<std::size_t>(rowOf[k]), i);
    }
    return reduced(applyToActivations(operators, expanded.view()), rowOf, matrix.rows(), subject);
}

MatrixD columnOf(const MatrixD &rowVector, const std::vector<double> &shift, const std::vector<std::int64_t> &rowOf)
{
    MatrixD column(rowVector.cols(), 1);
    for (std::size_t i = 0; i < column.rows(); ++i)
        column(i, 0) = rowVector(0, i);
    for (std::size_t k = rowOf.size(); k-- > 0 && !shift.empty();)
        column(static_cast<std::size_t>(rowOf[k]), 0) = rowVector(0, static_cast<std::size_t>(rowOf[k])) - shift[k];
    return column;
}

} // namespace

Transform fusedPrefix(const Assignment &assignment)
{
    Transform prefix;
    if (!assignment.rewrite)
        return prefix;
    const Transform &input = assignment.rewrite->input;
    const std::size_t count = std::min(assignment.placement.fusedOperators, input.operators.size());
    if (assignment.placement.shiftFused)
        prefix.shift = input.shift;
    prefix.operators.assign(input.operators.begin(), input.operators.begin() + static_cast<std::ptrdiff_t>(count));
    return prefix;
}

Expected<void> foldNorm(NormParameters &norm, const Transform &prefix, const std::string &subject)
{
    if (!allDiagonal(prefix))
        return refusal(subject, "a norm gain cannot hold a rotation or permutation", "expected a scale", "norm_gain_between");
    if (norm.gain.empty())
        return refusal(subject, "the norm has no gain to hold 1/s", "expected a norm with a learned scale", "norm_without_scale");
    if (!prefix.shift.empty() && norm.bias.empty())
        return refusal(subject, "the norm has no bias to hold -c", "expected a norm with a bias", "norm_without_bias");
    const std::vector<double> divisors = divisorsOf(prefix, norm.gain.size());
    for (std::size_t k = 0; k < norm.gain.size(); ++k) {
        const double offset = norm.offset;
        norm.gain[k] = norm.offset ? (offset + norm.gain[k]) / divisors[k] - offset : norm.gain[k] / divisors[k];
        if (!norm.bias.empty())
            norm.bias[k] = (norm.bias[k] - (prefix.shift.empty() ? 0.0 : prefix.shift[k])) / divisors[k];
    }
    return {};
}

Expected<std::vector<std::int64_t>> producerRowMap(std::size_t channels, std::size_t rows, const ModelInfo &model, const std::string &subject)
{
    std::vector<std::int64_t> map(channels);
    if (channels == rows) {
        for (std::size_t k = 0; k < channels; ++k)
            map[k] = static_cast<std::int64_t>(k);
        return map;
    }
    std::int64_t head = model.headDim;
    if (head <= 0 && model.numHeads > 0 && channels % static_cast<std::size_t>(model.numHeads) == 0)
        head = static_cast<std::int64_t>(channels) / model.numHeads;
    if (rows == 0 || channels % rows != 0 || head <= 0 || rows % static_cast<std::size_t>(head) != 0)
        return refusal(subject, std::to_string(rows) + " producer rows do not repeat into " + std::to_string(channels) + " channels",
                       "expected key-value heads that divide the query heads", "gqa_repeat");
    const auto repeat = static_cast<std::int64_t>(channels / rows);
    for (std::size_t k = 0; k < channels; ++k) {
        const auto channel = static_cast<std::int64_t>(k);
        map[k] = channel / head / repeat * head + channel % head;
    }
    return map;
}

Expected<void> foldProducerRows(MatrixD &weight, MatrixD *bias, const Transform &prefix, const std::vector<std::int64_t> &rowOf,
                                const std::string &subject)
{
    if (!prefix.shift.empty() && !bias)
        return refusal(subject, "the producer has no bias to hold -c", "expected a bias", "bias_has_no_place");
    if (allDiagonal(prefix))
        return foldDiagonalRows(weight, bias, prefix, rowOf, subject);
    Transform operators;
    operators.operators = prefix.operators;
    if (bias) {
        auto column = mixedRows(columnOf(*bias, prefix.shift, rowOf), operators, rowOf, subject);
        if (!column)
            return tl::make_unexpected(column.error());
        for (std::size_t i = 0; i < column->rows(); ++i)
            (*bias)(0, i) = (*column)(i, 0);
    }
    auto rows = mixedRows(weight, operators, rowOf, subject);
    if (!rows)
        return tl::make_unexpected(rows.error());
    weight = std::move(*rows);
    return {};
}

std::vector<double> rowDivisors(const Transform &prefix, const std::vector<std::int64_t> &rowOf, std::size_t rows)
{
    std::vector<double> result;
    if (!allDiagonal(prefix))
        return result;
    result.assign(rows, 1.0);
    const std::vector<double> divisors = divisorsOf(prefix, rowOf.size());
    for (std::size_t k = 0; k < rowOf.size(); ++k)
        result[static_cast<std::size_t>(rowOf[k])] = divisors[k];
    return result;
}

Expected<MatrixD> foldConsumerColumns(const MatrixD &weight, const Transform &input)
{
    if (!allDiagonal(input))
        return applyToWeights(input, weight.view());
    MatrixD folded = weight;
    for (const Operator &op : input.operators) {
        const auto *scale = std::get_if<ScaleOp>(&op.value);
        if (!scale)
            continue;
        if (scale->divisor.size() != weight.cols())
            return dataError("fold", "a scale of " + std::to_string(scale->divisor.size()) + " channels meets a weight of width " +
                             std::to_string(weight.cols()), "expected equal widths");
        for (std::size_t n = 0; n < folded.rows(); ++n) {
            const std::span<double> row = folded.row(n);
            for (std::size_t k = 0; k < row.size(); ++k)
                row[k] *= scale->divisor[k];
        }
    }
    return folded;
}

void foldConsumerBias(MatrixD &bias, const MatrixD &weight, const std::vector<double> &shift)
{
    for (std::size_t n = 0; n < weight.rows(); ++n) {
        double sum = 0;
        for (std::size_t k = 0; k < shift.size(); ++k)
            sum += weight(n, k) * shift[k];
        bias(0, n) += sum;
    }
}

} // namespace planish
