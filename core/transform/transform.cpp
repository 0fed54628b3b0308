#include <algorithm>
#include <cmath>
#include <limits>

#include "core/transform/operator.h"
#include "core/transform/operator_steps.h"

namespace planish {

namespace {

/// `row` P^-1 for the operators of `t`; channels whose factor has no inverse become NaN and are refused by the gates.
std::vector<double> backThrough(const std::vector<Operator> &operators, const std::vector<double> &row)
{
    MatrixD values(1, row.size());
    std::ranges::copy(row, values.data());
    for (auto op = operators.rbegin(); op != operators.rend(); ++op) {
        const Expected<Operator> inverse = inverseOf(*op);
        if (!inverse)
            return std::vector<double>(row.size(), std::numeric_limits<double>::quiet_NaN());
        for (const OperatorStep &step : stepsOf(*inverse))
            applyStep(values, step, Side::Activation);
    }
    return {values.data(), values.data() + row.size()};
}

MatrixD copyOf(ConstViewD view)
{
    MatrixD copy(view.rows, view.cols);
    for (std::size_t r = 0; r < view.rows; ++r)
        std::ranges::copy(view.row(r), copy.row(r).begin());
    return copy;
}

} // namespace

/// X' = ((X - c1) P1 - c2) P2 = (X - c1 - c2 P1^-1) P1 P2.
Transform Transform::then(const Transform &next) const
{
    Transform joined = *this;
    if (!next.shift.empty()) {
        const std::vector<double> moved = backThrough(operators, next.shift);
        joined.shift.resize(moved.size(), 0.0);
        for (std::size_t k = 0; k < moved.size(); ++k)
            joined.shift[k] += moved[k];
    }
    joined.operators.insert(joined.operators.end(), next.operators.begin(), next.operators.end());
    return joined;
}

std::vector<OperatorStep> Transform::steps() const
{
    std::vector<OperatorStep> all;
    for (const Operator &op : operators)
        std::ranges::move(stepsOf(op), std::back_inserter(all));
    return all;
}

MatrixD applyToActivations(const Transform &t, ConstViewD x)
{
    MatrixD result = copyOf(x);
    if (!t.shift.empty())
        for (std::size_t r = 0; r < result.rows(); ++r)
            for (std::size_t k = 0; k < result.cols(); ++k)
                result(r, k) -= t.shift[k];
    for (const OperatorStep &step : t.steps())
        applyStep(result, step, Side::Activation);
    return result;
}

Expected<MatrixD> applyToWeights(const Transform &t, ConstViewD w)
{
    for (const Operator &op : t.operators) {
        if (channelsOf(op) != w.cols)
            return refusal(nameOf(op), "acts on " + std::to_string(channelsOf(op)) + " channels",
                           "expected the " + std::to_string(w.cols) + " channels of the weight", "divisibility");
        if (const Expected<Operator> inverse = inverseOf(op); !inverse)
            return tl::make_unexpected(inverse.error());
    }
    MatrixD result = copyOf(w);
    for (const OperatorStep &step : t.steps())
        applyStep(result, step, Side::Weight);
    return result;
}

/// The original W: W' c would count the factors twice (the order trap of diagonal.md 0.1).
MatrixD applyToBias(const Transform &t, ConstViewD originalWeight, const MatrixD *bias)
{
    const bool hasBias = bias != nullptr && !bias->empty();
    if (!hasBias && t.shift.empty())
        return {};
    MatrixD result(1, originalWeight.rows);
    for (std::size_t n = 0; n < originalWeight.rows; ++n) {
        double sum = hasBias ? (*bias)(0, n) : 0.0;
        for (std::size_t k = 0; k < t.shift.size(); ++k)
            sum += originalWeight(n, k) * t.shift[k];
        result(0, n) = sum;
    }
    return result;
}

} // namespace planish
