#include "core/methods/product_weights.h"

#include <algorithm>
#include <cmath>

#include "core/methods/exact_columns.h"
#include "core/methods/kernel_result.h"
#include "core/methods/share_ranges.h"

namespace planish {
namespace {

MatrixD transposed(const MatrixD &matrix)
{
    MatrixD result(matrix.cols(), matrix.rows());
    for (std::size_t r = 0; r < matrix.rows(); ++r)
        for (std::size_t c = 0; c < matrix.cols(); ++c)
            result(c, r) = matrix(r, c);
    return result;
}

/// L1 L2 rows of consumer i: of its own pair, or its slice of the stacked left factor.
void subtractLowRank(MatrixD &weight, const LowRank &branch, std::size_t consumer, std::size_t firstRow)
{
    const MatrixD &left = branch.stacked ? branch.left.front() : branch.left[consumer];
    const MatrixD &right = branch.stacked ? branch.right.front() : branch.right[consumer];
    const std::size_t offset = branch.stacked ? firstRow : 0;
    for (std::size_t n = 0; n < weight.rows(); ++n) {
        for (std::size_t r = 0; r < branch.rank; ++r) {
            const double factor = left(offset + n, r);
            for (std::size_t k = 0; k < weight.cols(); ++k)
                weight(n, k) -= factor * right(r, k);
        }
    }
}

Expected<ResidentPtr> withOutputAndBranch(const ProductRows &rows, const Rewrite &rewrite, std::size_t consumer,
                                          std::size_t firstRow, ResidentPtr weight)
{
    if (!rewrite.output && !rewrite.lowRank)
        return weight;
    auto matrix = fromKernel(rows.backend->download(*weight), rows.subject);
    if (!matrix)
        return tl::make_unexpected(matrix.error());
    if (rewrite.output)
        *matrix = transposed(applyToActivations(*rewrite.output, transposed(*matrix).view()));
    if (rewrite.lowRank)
        subtractLowRank(*matrix, *rewrite.lowRank, consumer, firstRow);
    return fromKernel(rows.backend->upload(matrix->view()), rows.subject);
}

std::size_t firstRowOf(const ProductRows &rows, std::size_t consumer)
{
    std::size_t first = 0;
    for (std::size_t i = 0; i < consumer; ++i)
        first += rows.consumers[i].weight->rows();
    return first;
}

/// What goes into the quantizer: W', or W~' when the method replaced the weights.
Expected<ResidentPtr> storedWeight(const ProductRows &rows, const Rewrite &rewrite, std::size_t consumer,
                                   const ResidentPtr &weight)
{
    const bool replaced = consumer < rewrite.replaced.size() && rewrite.replaced[consumer].has_value();
    if (!replaced)
        return weight;
    auto resident = fromKernel(rows.backend->upload(rewrite.replaced[consumer]->view()), rows.subject);
    if (!resident)
        return resident;
    auto stored = transformed(*rows.backend, *resident, rewrite.input, Side::Weight, rows.subject);
    return stored ? withOutputAndBranch(rows, rewrite, consumer, firstRowOf(rows, consumer), *stored) : stored;
}

/// Error against W' instead of against the replaced weight.
Expected<Quantized> againstOriginal(const ProductRows &rows, Quantized quantized, const ResidentPtr &stored,
                                    const ResidentPtr &weight)
{
    if (stored == weight)
        return quantized;
    const Resident &source = quantized.reconstructed ? *quantized.reconstructed : *stored;
    auto reconstructed = fromKernel(rows.backend->download(source), rows.subject);
    auto original = fromKernel(rows.backend->download(*weight), rows.subject);
    if (!reconstructed || !original)
        return tl::make_unexpected(reconstructed ? original.error() : reconstructed.error());
    for (std::size_t i = 0; i < original->size(); ++i)
        reconstructed->data()[i] -= original->data()[i];
    auto error = fromKernel(rows.backend->upload(reconstructed->view()), rows.subject);
    if (!error)
        return tl::make_unexpected(error.error());
    quantized.error = std::move(*error);
    return quantized;
}

struct WeightBounds {
    NumberGrid grid;
    FixedRanges ranges;
    std::vector<double> clamp;
};

Expected<WeightBounds> weightBounds(const ProductRows &rows, const Rewrite &rewrite, const QuantSpec &spec, std::size_t consumer,
                                    const Resident &stored)
{
    WeightBounds bounds{.grid = spec.grid, .ranges = {}, .clamp = {}};
    for (const Clip &clip : rewrite.clips) {
        if (clip.target != Target::Weight || clip.consumer != consumer)
            continue;
        auto matrix = fromKernel(rows.backend->download(stored), rows.subject);
        if (!matrix)
            return tl::make_unexpected(matrix.error());
        if (auto applied = applyClip(clip, bounds.grid, bounds.ranges, bounds.clamp, &*matrix, rows.subject); !applied)
            return tl::make_unexpected(applied.error());
    }
    return bounds;
}

} // namespace

Expected<ResidentPtr> transformed(const Backend &backend, const ResidentPtr &matrix, const Transform &transform, Side side,
                                  const std::string &subject)
{
    const auto steps = transform.steps();
    if (steps.empty() && (side == Side::Weight || transform.shift.empty()))
        return matrix;
    const std::span<const double> shift =
        side == Side::Activation ? std::span<const double>(transform.shift) : std::span<const double>();
    return fromKernel(backend.transform(*matrix, shift, steps, side), subject);
}

Expected<std::shared_ptr<const MatrixD>> transformedMatrix(const Backend &backend, const std::shared_ptr<const MatrixD> &matrix,
                                                           const Transform &transform, const std::string &subject)
{
    if (transform.isIdentity())
        return matrix;
    auto resident = fromKernel(backend.upload(matrix->view()), subject);
    if (!resident)
        return tl::make_unexpected(resident.error());
    auto moved = transformed(backend, *resident, transform, Side::Activation, subject);
    if (!moved)
        return tl::make_unexpected(moved.error());
    auto result = fromKernel(backend.download(**moved), subject);
    if (!result)
        return tl::make_unexpected(result.error());
    return std::make_shared<const MatrixD>(std::move(*result));
}

Expected<std::vector<ResidentPtr>> transformedWeights(const ProductRows &rows, const Rewrite &rewrite)
{
    std::vector<ResidentPtr> weights;
    for (std::size_t i = 0; i < rows.consumers.size(); ++i) {
        auto weight = transformed(*rows.backend, rows.consumers[i].resident, rewrite.input, Side::Weight, rows.subject);
        if (weight)
            weight = withOutputAndBranch(rows, rewrite, i, firstRowOf(rows, i), *weight);
        if (!weight)
            return tl::make_unexpected(weight.error());
        weights.push_back(std::move(*weight));
    }
    return weights;
}

Expected<ResidentPtr> rotatedReference(const ProductRows &rows, const Transform &output, std::size_t consumer)
{
    auto reference = fromKernel(rows.backend->download(*rows.consumers[consumer].reference), rows.subject);
    if (!reference)
        return tl::make_unexpected(reference.error());
    const MatrixD rotated = applyToActivations(output, reference->view());
    return fromKernel(rows.backend->upload(rotated.view()), rows.subject);
}

Expected<double> sharedTensorMax(const ProductRows &rows, const QuantSpec &spec, const std::vector<ResidentPtr> &weights)
{
    double largest = -1.0;
    if (spec.grid.format != NumberFormat::NvFp4)
        return largest;
    for (const ResidentPtr &weight : weights) {
        auto matrix = fromKernel(rows.backend->download(*weight), rows.subject);
        if (!matrix)
            return tl::make_unexpected(matrix.error());
        for (const double value : matrix->values())
            largest = std::max(largest, std::abs(value));
    }
    return largest;
}

Expected<Quantized> quantizeConsumer(const ProductRows &rows, const Rewrite &rewrite, const QuantSpec &spec, std::size_t consumer,
                                     const ResidentPtr &weight, const std::vector<std::uint8_t> &exactColumns, double tensorMax)
{
    auto stored = storedWeight(rows, rewrite, consumer, weight);
    if (!stored)
        return tl::make_unexpected(stored.error());
    if (spec.isNone()) {
        Quantized exact;
        exact.counts.elements = weight->rows() * weight->cols();
        return againstOriginal(rows, std::move(exact), *stored, weight);
    }
    auto bounds = weightBounds(rows, rewrite, spec, consumer, **stored);
    if (!bounds)
        return tl::make_unexpected(bounds.error());
    const ExceptionMask mask = exactColumns.empty() ? ExceptionMask{} : weightMask(*rewrite.exceptions, exactColumns);
    const QuantizeRequest request{.grid = bounds->grid,
                                  .ranges = bounds->ranges.empty() ? nullptr : &bounds->ranges,
                                  .clampBound = bounds->clamp.empty() ? nullptr : &bounds->clamp,
                                  .exceptions = exactColumns.empty() ? nullptr : &mask,
                                  .tensorScaleMax = tensorMax};
    auto quantized = fromKernel(rows.backend->quantize(**stored, request), rows.subject);
    if (!quantized)
        return quantized;
    if (!exactColumns.empty() && rewrite.exceptions->weight != Precision::Stored)
        quantized =
            roundExactColumns(*rows.backend, std::move(*quantized), **stored, mask, rewrite.exceptions->weight, rows.subject);
    return quantized ? againstOriginal(rows, std::move(*quantized), *stored, weight) : quantized;
}

Expected<void> applyClip(const Clip &clip, NumberGrid &grid, FixedRanges &ranges, std::vector<double> &clamp,
                         const MatrixD *matrix, const std::string &subject)
{
    if (clip.clampsValues)
        clamp = clip.hi;
    if (clip.kind == Clip::Kind::AbsoluteBound) {
        if (clip.clampsValues) // the spec's own rule then sees the clamped values
            return {};
        ranges.clear();
        for (const double bound : clip.hi)
            ranges.push_back({-bound, bound});
        grid.clip = ClipRule{};
        return {};
    }
    if (clip.kind == Clip::Kind::AbsoluteRange) {
        ranges.clear();
        for (std::size_t i = 0; i < clip.hi.size(); ++i)
            ranges.push_back({clip.lo[i], clip.hi[i]});
        grid.clip = ClipRule{};
        return {};
    }
    const bool one = clip.hi.size() == 1 && clip.lo == clip.hi;
    if (one && ranges.empty()) {
        grid.clip = {ClipKind::Fixed, clip.hi.front()};
        return {};
    }
    if (ranges.empty() && matrix)
        ranges = shareRanges(grid, matrix->view());
    if (ranges.empty() || (clip.hi.size() != 1 && clip.hi.size() != ranges.size()))
        return dataError(subject,
                         "a fitted clip has " + std::to_string(clip.hi.size()) + " factors for " + std::to_string(ranges.size()) +
                             " shares",
                         "one factor, or one per share");
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        const std::size_t j = clip.hi.size() == 1 ? 0 : i;
        ranges[i] = {ranges[i].lo * clip.lo[j], ranges[i].hi * clip.hi[j]};
    }
    grid.clip = ClipRule{};
    return {};
}

Expected<ResidentPtr> rowsOf(const Backend &backend, const Resident &matrix, const std::vector<std::size_t> &rows,
                             const std::string &subject)
{
    auto whole = fromKernel(backend.download(matrix), subject);
    if (!whole)
        return tl::make_unexpected(whole.error());
    MatrixD part(rows.size(), whole->cols());
    for (std::size_t i = 0; i < rows.size(); ++i)
        std::ranges::copy(whole->row(rows[i]), part.row(i).begin());
    return fromKernel(backend.upload(part.view()), subject);
}

} // namespace planish
