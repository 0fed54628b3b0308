#include "core/transform/equivalence.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "kernels/float_codes.h"

namespace planish {

namespace {

tl::unexpected<Error> kernelError(const std::string &subject, const Status &status)
{
    switch (status.code) {
    case StatusCode::OutOfMemory:
    case StatusCode::DeviceLost:
        return machineError(subject, status.message, "expected room for the equivalence check");
    case StatusCode::Cancelled:
        return cancelled(subject);
    default:
        return dataError(subject, status.message, "expected matching shapes");
    }
}

/// A B^T on the backend, with `b` uploaded for it.
Expected<MatrixD> productWith(const Backend &backend, const Resident &a, const MatrixD &b, const std::string &subject)
{
    const auto uploaded = backend.upload(b.view());
    if (!uploaded)
        return kernelError(subject, uploaded.error());
    const auto product = backend.product(a, **uploaded);
    if (!product)
        return kernelError(subject, product.error());
    auto values = backend.download(**product);
    if (!values)
        return kernelError(subject, values.error());
    return *std::move(values);
}

void addBias(MatrixD &y, const MatrixD *bias)
{
    if (bias == nullptr || bias->empty())
        return;
    for (std::size_t m = 0; m < y.rows(); ++m)
        for (std::size_t n = 0; n < y.cols(); ++n)
            y(m, n) += (*bias)(0, n);
}

MatrixD rounded(const MatrixD &matrix, StoredType type)
{
    MatrixD result = matrix;
    for (double &value : result.values())
        value = roundToStored(value, type);
    return result;
}

/// The difference of two outputs, without the row that softmax cancels when the consumer is exempt.
MatrixD difference(const MatrixD &y, const MatrixD &transformed, bool exemptConstantRow)
{
    MatrixD d(y.rows(), y.cols());
    for (std::size_t i = 0; i < d.size(); ++i)
        d.data()[i] = transformed.data()[i] - y.data()[i];
    if (!exemptConstantRow || d.rows() == 0)
        return d;
    for (std::size_t n = 0; n < d.cols(); ++n) {
        double mean = 0.0;
        for (std::size_t m = 0; m < d.rows(); ++m)
            mean += d(m, n);
        mean /= static_cast<double>(d.rows());
        for (std::size_t m = 0; m < d.rows(); ++m)
            d(m, n) -= mean;
    }
    return d;
}

double sumOfSquares(std::span<const double> values)
{
    double sum = 0.0;
    for (const double value : values)
        sum += value * value;
    return sum;
}

/// NaN counts as infinitely far: std::max would drop it.
double orInfinite(double value)
{
    return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
}

double relative(double error, double reference)
{
    if (error == 0.0)
        return 0.0;
    return orInfinite(std::sqrt(error) / std::sqrt(reference));
}

void addMeasures(Equivalence &result, const std::string &name, const MatrixD &y, const MatrixD &d)
{
    const double reference = sumOfSquares(y.values());
    const double distance = relative(sumOfSquares(d.values()), reference);
    const double floor = y.empty() ? 0.0 : 1e-3 * std::sqrt(reference / static_cast<double>(y.size()));
    double maxAbs = 0.0, maxRel = 0.0;
    for (std::size_t i = 0; i < d.size(); ++i) {
        const double error = orInfinite(std::abs(d.data()[i]));
        const double size = std::max(std::abs(y.data()[i]), floor);
        maxAbs = std::max(maxAbs, error);
        if (error > 0.0)
            maxRel = std::max(maxRel, orInfinite(error / size));
    }
    if (result.worstConsumer.empty() || distance > result.relativeFrobenius) {
        result.worstConsumer = name;
        result.floor = floor;
    }
    result.relativeFrobenius = std::max(result.relativeFrobenius, distance);
    result.maxAbs = std::max(result.maxAbs, maxAbs);
    result.maxRel = std::max(result.maxRel, maxRel);
}

Expected<void> measurePair(Equivalence &result, const Backend &backend, const Resident &x, const Resident &xPrime,
                           const EquivalencePair &pair, double kappa)
{
    auto y = productWith(backend, x, *pair.weight, pair.name);
    if (!y)
        return tl::make_unexpected(y.error());
    addBias(*y, pair.bias);
    auto transformed = productWith(backend, xPrime, *pair.transformed, pair.name);
    if (!transformed)
        return tl::make_unexpected(transformed.error());
    addBias(*transformed, pair.transformedBias);
    if (transformed->cols() != y->cols())
        return dataError(pair.name, "the transformed weight has another number of outputs",
                         "expected " + std::to_string(y->cols()));
    addMeasures(result, pair.name, *y, difference(*y, *transformed, pair.exemptConstantRow));

    auto stored = productWith(backend, xPrime, rounded(*pair.transformed, pair.storedType), pair.name);
    if (!stored)
        return tl::make_unexpected(stored.error());
    if (pair.transformedBias != nullptr) {
        const MatrixD bias = rounded(*pair.transformedBias, pair.storedType);
        addBias(*stored, &bias);
    }
    const MatrixD d = difference(*y, *stored, pair.exemptConstantRow);
    const double distance = relative(sumOfSquares(d.values()), sumOfSquares(y->values()));
    const double threshold = equivalenceThreshold(pair.storedType, kappa);
    result.storedPassed = result.storedPassed && distance <= threshold;
    if (result.storedDtype.empty() || distance > result.storedRelativeFrobenius) {
        result.storedDtype = nameOf(pair.storedType);
        result.storedRelativeFrobenius = distance;
        result.storedThreshold = threshold;
    }
    return {};
}

} // namespace

double equivalenceThreshold(StoredType type, double kappa)
{
    const double amplified = std::max(1.0, kappa);
    switch (type) {
    case StoredType::F64:
        return 1e-12 * amplified;
    case StoredType::F16:
        return 1e-3;
    case StoredType::Bf16:
        return 8e-3;
    default:
        return 5e-6 * amplified;
    }
}

double roundToStored(double value, StoredType type)
{
    switch (type) {
    case StoredType::F32:
        return static_cast<float>(value);
    case StoredType::F16:
        return roundToHalf(value);
    case StoredType::Bf16:
        return roundToBfloat16(value);
    default:
        return value;
    }
}

Expected<Equivalence> measureEquivalence(const Backend &backend, ConstViewD x, ConstViewD xPrime,
                                         const std::vector<EquivalencePair> &pairs, double kappaNonDiagonal)
{
    const std::string subject = pairs.empty() ? "equivalence" : pairs.front().name;
    if (x.rows != xPrime.rows)
        return dataError(subject, "X and X' have different rows", "expected the same rows on both sides");
    const auto original = backend.upload(x), changed = backend.upload(xPrime);
    if (!original || !changed)
        return kernelError(subject, original ? changed.error() : original.error());
    Equivalence result;
    result.rows = static_cast<std::int64_t>(x.rows);
    result.threshold = equivalenceThreshold(StoredType::F64, kappaNonDiagonal);
    for (const EquivalencePair &pair : pairs)
        if (const auto done = measurePair(result, backend, **original, **changed, pair, kappaNonDiagonal); !done)
            return tl::make_unexpected(done.error());
    result.passed = result.relativeFrobenius <= result.threshold;
    return result;
}

} // namespace planish
