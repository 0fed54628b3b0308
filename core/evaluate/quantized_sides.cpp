#include "core/evaluate/quantized_sides.h"

#include <algorithm>

#include "core/evaluate/intervention_place.h"
#include "core/methods/kernel_result.h"
#include "core/methods/residual_merge.h"
#include "core/quant/clip_rule.h"

namespace planish {

namespace {

/// Calibration values that fix a static range: without the kept elements where one range spans them all.
MatrixD rangeValues(const MatrixD &rows, const ExceptionMask &kept)
{
    std::vector<double> values;
    for (std::size_t m = 0; m < rows.rows(); ++m)
        for (std::size_t k = 0; k < rows.cols(); ++k)
            if (!isFlagged(kept, m, k))
                values.push_back(rows(m, k));
    MatrixD line(1, std::max<std::size_t>(values.size(), 1)); // everything kept: a zero range
    std::ranges::copy(values, line.data());
    return line;
}

Expected<Quantized> quantizedX(const PartRows &rows, const QuantSpec &spec, const ResidentPtr &x, const MatrixD &calibration,
                               const KeptElements &kept)
{
    const std::string &subject = rows.product.subject;
    QuantizeRequest request{.grid = spec.grid};
    FixedRanges ranges;
    if (spec.grid.timing == Timing::Static) {
        const bool oneRange = spec.grid.sharing == Sharing::Tensor || isBlockFormat(spec.grid.format);
        const bool without = oneRange && !isEmpty(kept.ranges);
        auto found = staticRanges(spec, without ? rangeValues(calibration, kept.ranges).view() : calibration.view());
        if (!found)
            return tl::make_unexpected(found.error());
        request.tensorScaleMax = staticTensorMax(spec, *found);
        if (!isBlockFormat(spec.grid.format)) {
            ranges = std::move(*found);
            request.ranges = &ranges;
        }
    }
    if (!isEmpty(kept.activation))
        request.exceptions = &kept.activation;
    return fromKernel(rows.product.backend->quantize(*x, request), subject);
}

/// Error of a reconstruction against the stored matrix; the kernel's own error holds only when its input was that matrix.
Expected<ResidentPtr> errorAgainst(const PartRows &rows, const Resident &reconstructed, const MatrixD &stored)
{
    const Backend &backend = *rows.product.backend;
    auto values = fromKernel(backend.download(reconstructed), rows.product.subject);
    if (!values)
        return tl::make_unexpected(values.error());
    std::ranges::transform(values->values(), stored.values(), values->values().begin(), std::minus<>());
    return fromKernel(backend.upload(values->view()), rows.product.subject);
}

Expected<ResidentPtr> resident(const PartRows &rows, const std::shared_ptr<const MatrixD> &replaced, const ResidentPtr &stored)
{
    return replaced ? fromKernel(rows.product.backend->upload(replaced->view()), rows.product.subject)
                    : Expected<ResidentPtr>(stored);
}

Expected<void> quantizeActivation(const PartRows &rows, const SpecPair &specs, const QuantizerInputs &inputs,
                                  const KeptElements &kept, QuantizedSides &sides)
{
    auto x = resident(rows, inputs.x, rows.product.resident);
    if (!x)
        return tl::make_unexpected(x.error());
    sides.activation = *x;
    if (!specs.act.isNone()) {
        const MatrixD &calibration = inputs.ranges ? *inputs.ranges : *rows.product.rangeRows;
        auto quantized = quantizedX(rows, specs.act, *x, calibration, kept);
        if (!quantized)
            return tl::make_unexpected(quantized.error());
        sides.activation = quantized->reconstructed;
        sides.activationError = quantized->error;
    }
    if (!inputs.x)
        return {};
    auto error = errorAgainst(rows, *sides.activation, *rows.product.x);
    if (!error)
        return tl::make_unexpected(error.error());
    sides.activationError = std::move(*error);
    return {};
}

Expected<ResidentPtr> weightError(const PartRows &rows, const QuantSpec &spec, std::size_t consumer,
                                  const std::shared_ptr<const MatrixD> &replaced, const ExceptionMask &kept)
{
    const ResidentConsumer &stored = rows.product.consumers[consumer];
    auto weight = resident(rows, replaced, stored.resident);
    if (!weight)
        return weight;
    Quantized quantized;
    quantized.reconstructed = *weight;
    if (!spec.isNone()) {
        const QuantizeRequest request{.grid = spec.grid, .exceptions = isEmpty(kept) ? nullptr : &kept};
        auto result = fromKernel(rows.product.backend->quantize(**weight, request), rows.product.subject);
        if (!result)
            return tl::make_unexpected(result.error());
        quantized = std::move(*result);
    }
    return replaced ? errorAgainst(rows, *quantized.reconstructed, *stored.weight) : Expected<ResidentPtr>(quantized.error);
}

/// The error with the flagged elements kept or dropped; null when nothing remains.
Expected<ResidentPtr> maskedError(const PartRows &rows, const ResidentPtr &error, FlaggedErrors flagged,
                                  const ExceptionMask &mask)
{
    if (!error)
        return error;
    if (isEmpty(mask))
        return flagged == FlaggedErrors::Keep ? ResidentPtr() : error;
    auto values = fromKernel(rows.product.backend->download(*error), rows.product.subject);
    if (!values)
        return tl::make_unexpected(values.error());
    for (std::size_t m = 0; m < values->rows(); ++m)
        for (std::size_t k = 0; k < values->cols(); ++k)
            if (isFlagged(mask, m, k) != (flagged == FlaggedErrors::Keep))
                (*values)(m, k) = 0.0;
    return fromKernel(rows.product.backend->upload(values->view()), rows.product.subject);
}

/// X + E_X, which is what an exact X with only these errors became.
Expected<ResidentPtr> shifted(const PartRows &rows, const ResidentPtr &error)
{
    if (!error)
        return rows.product.resident;
    auto values = fromKernel(rows.product.backend->download(*error), rows.product.subject);
    if (!values)
        return tl::make_unexpected(values.error());
    std::ranges::transform(values->values(), rows.product.x->values(), values->values().begin(), std::plus<>());
    return fromKernel(rows.product.backend->upload(values->view()), rows.product.subject);
}

} // namespace

Expected<QuantizedSides> quantizeSides(const PartRows &rows, const SpecPair &specs, const QuantizerInputs &inputs,
                                       const KeptElements &kept, std::stop_token stop)
{
    QuantizedSides sides;
    if (auto done = quantizeActivation(rows, specs, inputs, kept, sides); !done)
        return tl::make_unexpected(done.error());
    for (std::size_t i = 0; i < rows.product.consumers.size(); ++i) {
        if (stop.stop_requested())
            return cancelled(rows.product.subject);
        auto error = weightError(rows, specs.weight, i, inputs.weights.empty() ? nullptr : inputs.weights[i],
                                 kept.weights.empty() ? ExceptionMask{} : kept.weights[i]);
        if (!error)
            return tl::make_unexpected(error.error());
        sides.weightErrors.push_back(std::move(*error));
    }
    return sides;
}

Expected<QuantizedSides> withErrors(const PartRows &rows, const QuantizedSides &sides, FlaggedErrors flagged,
                                    const ExceptionMask &activation, const std::vector<ExceptionMask> &weights)
{
    QuantizedSides masked;
    auto error = maskedError(rows, sides.activationError, flagged, activation);
    auto moved = error ? shifted(rows, *error) : error;
    if (!moved)
        return tl::make_unexpected(moved.error());
    masked.activationError = std::move(*error);
    masked.activation = std::move(*moved);
    for (std::size_t i = 0; i < sides.weightErrors.size(); ++i) {
        auto weight = maskedError(rows, sides.weightErrors[i], flagged, weights[i]);
        if (!weight)
            return tl::make_unexpected(weight.error());
        masked.weightErrors.push_back(std::move(*weight));
    }
    return masked;
}

QuantizedSides withExactActivation(const PartRows &rows, QuantizedSides sides)
{
    sides.activation = rows.product.resident;
    sides.activationError.reset();
    return sides;
}

Expected<ResidualSums> productError(const PartRows &rows, const QuantizedSides &sides, TermDetail detail, std::stop_token stop)
{
    ResidualSums stacked;
    for (std::size_t i = 0; i < rows.product.consumers.size(); ++i) {
        const ResidentConsumer &consumer = rows.product.consumers[i];
        auto sums = fromKernel(rows.product.backend->residual(sides.activationError.get(), *rows.product.resident,
                                                              *sides.activation, sides.weightErrors[i].get(), *consumer.resident,
                                                              *consumer.reference, detail, stop),
                               rows.product.subject);
        if (!sums)
            return sums;
        appendConsumer(stacked, *sums);
    }
    return stacked;
}

} // namespace planish
