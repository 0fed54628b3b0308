#include "core/methods/edge_product.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/methods/exact_columns.h"
#include "core/methods/kernel_result.h"
#include "core/methods/product_weights.h"
#include "core/quant/clip_rule.h"
#include "kernels/share_codes.h"

namespace planish {
namespace {

std::vector<Clip> clipsOf(const Rewrite &rewrite, Target target)
{
    std::vector<Clip> clips;
    std::ranges::copy_if(rewrite.clips, std::back_inserter(clips), [&](const Clip &clip) { return clip.target == target; });
    return clips;
}

bool needsRanges(const QuantSpec &act)
{
    return !act.isNone() && act.grid.timing == Timing::Static;
}

/// X', the calibration rows in the same coordinates and W', from the cache when it holds the same transform.
Expected<void> transformSides(const ProductRows &rows, const Rewrite &rewrite, const SpecPair &specs, ProductCache &cache)
{
    const bool plain = rewrite.replaced.empty() && !rewrite.output && !rewrite.lowRank;
    if (!(cache.hasTransform && plain && cache.transform == rewrite.input)) {
        cache = ProductCache{};
        auto x = transformed(*rows.backend, rows.resident, rewrite.input, Side::Activation, rows.subject);
        if (!x)
            return tl::make_unexpected(x.error());
        cache.x = std::move(*x);
        auto weights = transformedWeights(rows, rewrite);
        if (!weights)
            return tl::make_unexpected(weights.error());
        cache.weights = std::move(*weights);
        cache.transform = rewrite.input;
        cache.hasTransform = plain;
    }
    if (needsRanges(specs.act) && !cache.rangeRows) {
        auto ranges = transformedMatrix(*rows.backend, rows.rangeRows, rewrite.input, rows.subject);
        if (!ranges)
            return tl::make_unexpected(ranges.error());
        cache.rangeRows = std::move(*ranges);
    }
    return {};
}

/// Ranges of static activations and of fitted clips; empty when the spec's own rule at use decides.
struct ActivationBounds {
    NumberGrid grid;
    FixedRanges ranges;
    std::vector<double> clamp;
    double tensorScaleMax = -1.0;
};

Expected<ActivationBounds> activationBounds(const Backend &backend, const ProductCache &cache, const std::vector<Clip> &clips, const QuantSpec &spec,
                                            const std::string &subject)
{
    ActivationBounds bounds{.grid = spec.grid, .ranges = {}, .clamp = {}};
    if (needsRanges(spec)) {
        auto ranges = staticRanges(spec, cache.rangeRows->view());
        if (!ranges)
            return tl::make_unexpected(ranges.error());
        bounds.tensorScaleMax = staticTensorMax(spec, *ranges);
        if (!isBlockFormat(spec.grid.format))
            bounds.ranges = std::move(*ranges);
    }
    for (const Clip &clip : clips) {
        MatrixD matrix; // a clip with its own factor for each end multiplies the ranges of the rows at hand
        const bool twoSided = clip.kind == Clip::Kind::Multiplier && clip.lo != clip.hi && bounds.ranges.empty();
        if (twoSided) {
            auto rows = fromKernel(backend.download(*cache.x), subject);
            if (!rows)
                return tl::make_unexpected(rows.error());
            matrix = std::move(*rows);
        }
        if (auto applied = applyClip(clip, bounds.grid, bounds.ranges, bounds.clamp, twoSided ? &matrix : nullptr, subject); !applied)
            return tl::make_unexpected(applied.error());
    }
    return bounds;
}

Expected<Quantized> quantizeActivation(const ProductRows &rows, const ProductCache &cache, const Rewrite &rewrite,
                                       const QuantSpec &spec, const std::optional<ResolvedExceptions> &exceptions)
{
    if (spec.isNone()) {
        Quantized exact;
        exact.reconstructed = cache.x;
        exact.counts.elements = cache.x->rows() * cache.x->cols();
        return exact;
    }
    auto bounds = activationBounds(*rows.backend, cache, clipsOf(rewrite, Target::Activation), spec, rows.subject);
    if (!bounds)
        return tl::make_unexpected(bounds.error());
    const QuantizeRequest request{.grid = bounds->grid,
                                  .ranges = bounds->ranges.empty() ? nullptr : &bounds->ranges,
                                  .clampBound = bounds->clamp.empty() ? nullptr : &bounds->clamp,
                                  .exceptions = exceptions ? &exceptions->activation : nullptr,
                                  .tensorScaleMax = bounds->tensorScaleMax};
    auto quantized = fromKernel(rows.backend->quantize(*cache.x, request), rows.subject);
    if (quantized && exceptions && rewrite.exceptions->activation != Precision::Stored)
        return roundExactColumns(*rows.backend, std::move(*quantized), *cache.x, exceptions->activation,
                                 rewrite.exceptions->activation, rows.subject);
    return quantized;
}

struct RowGroup {
    std::vector<std::size_t> rows;     ///< empty: all
    std::vector<std::uint8_t> columns; ///< K flags of the exact columns of W; empty: none
};

/// Rows that share one quantized W: all of them, unless a dynamic set takes other columns out for other requests.
std::vector<RowGroup> rowGroups(const Rewrite &rewrite, const SpecPair &specs,
                                const std::optional<ResolvedExceptions> &exceptions)
{
    if (!exceptions || rewrite.exceptions->weight == Precision::Quantized || specs.weight.isNone())
        return {RowGroup{}};
    if (exceptions->unitColumns.size() == 1)
        return {RowGroup{.rows = {}, .columns = exceptions->unitColumns.front()}};
    std::map<std::vector<std::uint8_t>, RowGroup> groups;
    for (std::size_t m = 0; m < exceptions->rowUnit.size(); ++m) {
        const auto &columns = exceptions->unitColumns[static_cast<std::size_t>(exceptions->rowUnit[m])];
        RowGroup &group = groups[columns];
        group.columns = columns;
        group.rows.push_back(m);
    }
    if (groups.size() == 1)
        return {RowGroup{.rows = {}, .columns = groups.begin()->first}};
    std::vector<RowGroup> list;
    for (auto &[columns, group] : groups)
        list.push_back(std::move(group));
    return list;
}

/// The four resident matrices of the activation side, or the given rows of them.
struct ActivationSide {
    ResidentPtr x, quantized, error;
};

Expected<ResidualSums> residualOf(const ProductRows &rows, const ActivationSide &side, const ResidentPtr &weight,
                                  const Quantized &quantized, const ResidentPtr &reference, TermDetail detail,
                                  std::stop_token stop)
{
    return fromKernel(rows.backend->residual(side.error.get(), *side.x, *side.quantized, quantized.error.get(), *weight,
                                             *reference, detail, stop),
                      rows.subject);
}

struct Accumulator {
    const ProductRows &rows;
    const Rewrite &rewrite;
    const SpecPair &specs;
    TermDetail detail;
    std::stop_token stop;
    ProductCache &cache;

    Expected<Quantized> weightOf(std::size_t consumer, const RowGroup &group) const
    {
        if (cache.hasWeights)
            return cache.quantizedWeights[consumer];
        auto tensorMax = sharedTensorMax(rows, specs.weight, cache.weights);
        if (!tensorMax)
            return tl::make_unexpected(tensorMax.error());
        return quantizeConsumer(rows, rewrite, specs.weight, consumer, cache.weights[consumer], group.columns, *tensorMax);
    }

    Expected<ActivationSide> sideOf(const Quantized &activation, const RowGroup &group) const
    {
        ActivationSide side{cache.x, activation.reconstructed, activation.error};
        if (group.rows.empty())
            return side;
        for (ResidentPtr *matrix : {&side.x, &side.quantized, &side.error}) {
            if (!*matrix)
                continue;
            auto part = rowsOf(*rows.backend, **matrix, group.rows, rows.subject);
            if (!part)
                return tl::make_unexpected(part.error());
            *matrix = std::move(*part);
        }
        return side;
    }

    Expected<ResidentPtr> referenceOf(std::size_t consumer, const RowGroup &group) const
    {
        auto reference = rewrite.output ? rotatedReference(rows, *rewrite.output, consumer)
                                        : Expected<ResidentPtr>(rows.consumers[consumer].reference);
        if (!reference || group.rows.empty())
            return reference;
        return rowsOf(*rows.backend, **reference, group.rows, rows.subject);
    }

    Expected<void> addGroup(ProductError &product, const Quantized &activation, const RowGroup &group) const
    {
        auto side = sideOf(activation, group);
        if (!side)
            return tl::make_unexpected(side.error());
        ResidualSums stacked;
        for (std::size_t i = 0; i < rows.consumers.size(); ++i) {
            if (stop.stop_requested())
                return cancelled(rows.subject);
            auto weight = weightOf(i, group);
            auto reference = referenceOf(i, group);
            if (!weight || !reference)
                return tl::make_unexpected(weight ? reference.error() : weight.error());
            auto sums = residualOf(rows, *side, cache.weights[i], *weight, *reference, detail, stop);
            if (!sums)
                return tl::make_unexpected(sums.error());
            appendConsumer(stacked, *sums);
            addCounts(product.weight, weight->counts);
            if (!cache.hasWeights)
                product.fresh.push_back(std::move(*weight));
        }
        if (group.rows.empty())
            product.sums = std::move(stacked);
        else
            scatterRows(product.sums, stacked, group.rows, cache.x->rows());
        return {};
    }
};

/// The exception columns of X', where the Rewrite has any.
Expected<void> resolveInto(ProductError &product, const ProductRows &rows, const Rewrite &rewrite)
{
    if (!rewrite.exceptions)
        return {};
    auto x = fromKernel(rows.backend->download(*product.xPrime), rows.subject);
    if (!x)
        return tl::make_unexpected(x.error());
    auto resolved = resolveExceptions(*rewrite.exceptions, x->view(), rows.requests);
    if (!resolved)
        return tl::make_unexpected(resolved.error());
    product.exceptions = std::move(*resolved);
    return {};
}

} // namespace

Expected<ProductRows> makeProductRows(std::shared_ptr<const Backend> backend, std::string subject,
                                      std::shared_ptr<const MatrixD> x, std::vector<std::int32_t> requests,
                                      std::shared_ptr<const MatrixD> rangeRows, const std::vector<ConsumerWeights> &consumers)
{
    ProductRows rows{.backend = std::move(backend),
                     .subject = std::move(subject),
                     .x = std::move(x),
                     .resident = {},
                     .requests = std::move(requests),
                     .rangeRows = std::move(rangeRows),
                     .consumers = {}};
    auto resident = fromKernel(rows.backend->upload(rows.x->view()), rows.subject);
    if (!resident)
        return tl::make_unexpected(resident.error());
    rows.resident = std::move(*resident);
    for (const ConsumerWeights &consumer : consumers) {
        auto weight = fromKernel(rows.backend->upload(consumer.weight->view()), rows.subject);
        if (!weight)
            return tl::make_unexpected(weight.error());
        auto reference = fromKernel(rows.backend->product(*rows.resident, **weight), rows.subject);
        if (!reference)
            return tl::make_unexpected(reference.error());
        rows.consumers.push_back({consumer.weight, std::move(*weight), std::move(*reference)});
    }
    return rows;
}

Expected<ProductError> measureProduct(const ProductRows &rows, const Rewrite &rewrite, const SpecPair &specs, TermDetail detail,
                                      std::stop_token stop, ProductCache *kept)
{
    ProductCache local;
    ProductCache &cache = kept ? *kept : local;
    if (auto sides = transformSides(rows, rewrite, specs, cache); !sides)
        return tl::make_unexpected(sides.error());
    ProductError product;
    product.xPrime = cache.x;
    if (auto resolved = resolveInto(product, rows, rewrite); !resolved)
        return tl::make_unexpected(resolved.error());
    const auto weightClips = clipsOf(rewrite, Target::Weight), activationClips = clipsOf(rewrite, Target::Activation);
    const bool reusable = cache.hasTransform && !rewrite.exceptions;
    cache.hasWeights = cache.hasWeights && reusable && cache.weightClips == weightClips;
    cache.hasActivation = cache.hasActivation && reusable && cache.activationClips == activationClips;
    if (!cache.hasActivation) {
        auto activation = quantizeActivation(rows, cache, rewrite, specs.act, product.exceptions);
        if (!activation)
            return tl::make_unexpected(activation.error());
        cache.quantizedActivation = std::move(*activation);
    }
    product.activation = cache.quantizedActivation.counts;
    const Accumulator accumulator{rows, rewrite, specs, detail, stop, cache};
    for (const RowGroup &group : rowGroups(rewrite, specs, product.exceptions))
        if (auto added = accumulator.addGroup(product, cache.quantizedActivation, group); !added)
            return tl::make_unexpected(added.error());
    for (const ResidentConsumer &consumer : rows.consumers)
        product.consumerOutputs.push_back(consumer.weight->rows());
    if (reusable && !cache.hasWeights) {
        cache.quantizedWeights = std::move(product.fresh);
        cache.weightClips = weightClips;
        cache.hasWeights = true;
    }
    cache.activationClips = activationClips;
    cache.hasActivation = reusable;
    product.fresh.clear();
    return product;
}

} // namespace planish
