#include "core/evaluate/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/evaluate/quantized_sides.h"
#include "core/methods/channel_factors.h"
#include "core/methods/kernel_result.h"

namespace planish {

namespace {

constexpr std::size_t kRestored = 32; // evaluation.md 4

using Column = std::vector<double>;

Expected<MatrixD> valuesOf(const PartRows &rows, const ResidentPtr &matrix, std::size_t height)
{
    if (!matrix)
        return MatrixD(height, rows.product.x->cols());
    return fromKernel(rows.product.backend->download(*matrix), rows.product.subject);
}

Column columnEnergies(const MatrixD &matrix)
{
    Column energies(matrix.cols(), 0.0);
    for (std::size_t r = 0; r < matrix.rows(); ++r)
        for (std::size_t k = 0; k < matrix.cols(); ++k)
            energies[k] += matrix(r, k) * matrix(r, k);
    return energies;
}

void add(Column &sum, const Column &part)
{
    if (sum.empty())
        sum.assign(part.size(), 0.0);
    std::ranges::transform(sum, part, sum.begin(), std::plus<>());
}

Column columnOf(const MatrixD &matrix, std::size_t k)
{
    Column column(matrix.rows());
    for (std::size_t r = 0; r < matrix.rows(); ++r)
        column[r] = matrix(r, k);
    return column;
}

double dot(std::span<const double> a, std::span<const double> b)
{
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i)
        sum += a[i] * b[i];
    return sum;
}

/// Element errors of the activation side.
struct ActivationSide {
    MatrixD error, quantized;
    Column errorEnergy, quantizedEnergy;
};

Expected<ActivationSide> activationSide(const PartRows &rows, const QuantizedSides &sides)
{
    auto error = valuesOf(rows, sides.activationError, rows.product.x->rows());
    auto quantized = error ? valuesOf(rows, sides.activation, rows.product.x->rows()) : error;
    if (!quantized)
        return tl::make_unexpected(quantized.error());
    ActivationSide side{std::move(*error), std::move(*quantized), {}, {}};
    side.errorEnergy = columnEnergies(side.error);
    side.quantizedEnergy = columnEnergies(side.quantized);
    return side;
}

/// E of one consumer in double: E_X W^T + X_q E_W^T.
Expected<MatrixD> outputError(const PartRows &rows, const QuantizedSides &sides, std::size_t consumer)
{
    const Backend &backend = *rows.product.backend;
    const ResidentConsumer &stored = rows.product.consumers[consumer];
    MatrixD error(rows.product.x->rows(), stored.weight->rows());
    const auto addProduct = [&](const ResidentPtr &a, const ResidentPtr &b) -> Expected<void> {
        if (!a || !b)
            return {};
        auto product = fromKernel(backend.product(*a, *b), rows.product.subject);
        auto values =
            product ? fromKernel(backend.download(**product), rows.product.subject) : tl::make_unexpected(product.error());
        if (!values)
            return tl::make_unexpected(values.error());
        std::ranges::transform(error.values(), values->values(), error.values().begin(), std::plus<>());
        return {};
    };
    if (auto done = addProduct(sides.activationError, stored.resident); !done)
        return tl::make_unexpected(done.error());
    if (auto done = addProduct(sides.activation, sides.weightErrors[consumer]); !done)
        return tl::make_unexpected(done.error());
    return error;
}

/// W[:,k] and E_W[:,k] of the restored channels as rows [2 R, N].
MatrixD weightColumns(const MatrixD &weight, const MatrixD &error, const std::vector<std::int64_t> &channels)
{
    MatrixD columns(2 * channels.size(), weight.rows());
    for (std::size_t i = 0; i < channels.size(); ++i) {
        for (std::size_t n = 0; n < weight.rows(); ++n) {
            columns(2 * i, n) = weight(n, static_cast<std::size_t>(channels[i]));
            columns(2 * i + 1, n) = error(n, static_cast<std::size_t>(channels[i]));
        }
    }
    return columns;
}

/// Adds 2 <E, D_k> - ||D_k||^2 of one consumer to every restored channel, D_k = e_k w_k^T + xq_k ew_k^T.
Expected<void> addRestored(const PartRows &rows, const ActivationSide &x, const MatrixD &weightError, std::size_t consumer,
                           const MatrixD &error, const std::vector<std::int64_t> &channels, Column &restored)
{
    const Backend &backend = *rows.product.backend;
    const MatrixD columns = weightColumns(*rows.product.consumers[consumer].weight, weightError, channels);
    auto left = fromKernel(backend.upload(error.view()), rows.product.subject);
    auto right = fromKernel(backend.upload(columns.view()), rows.product.subject);
    if (!left || !right)
        return tl::make_unexpected(left ? right.error() : left.error());
    auto product = fromKernel(backend.product(**left, **right), rows.product.subject);
    auto projected =
        product ? fromKernel(backend.download(**product), rows.product.subject) : tl::make_unexpected(product.error());
    if (!projected)
        return tl::make_unexpected(projected.error());
    for (std::size_t i = 0; i < channels.size(); ++i) {
        const Column e = columnOf(x.error, static_cast<std::size_t>(channels[i])),
                     q = columnOf(x.quantized, static_cast<std::size_t>(channels[i]));
        const auto w = columns.row(2 * i), v = columns.row(2 * i + 1);
        const double cross = dot(e, columnOf(*projected, 2 * i)) + dot(q, columnOf(*projected, 2 * i + 1));
        const double square = dot(e, e) * dot(w, w) + 2 * dot(e, q) * dot(w, v) + dot(q, q) * dot(v, v);
        restored[i] += 2 * cross - square;
    }
    return {};
}

Column contributions(const Column &energy, const Column &weightEnergy)
{
    Column shares(energy.size());
    std::ranges::transform(energy, weightEnergy, shares.begin(), std::multiplies<>());
    const double total = pairwiseSum(shares);
    for (double &share : shares)
        share = total > 0 ? share / total : 0.0;
    return shares;
}

/// quantization_k and the energies of W, consumers stacked.
Expected<void> addChannels(const PartRows &rows, const QuantizedSides &sides, const ActivationSide &x, const Column &energy,
                           std::vector<MatrixD> &weightErrors, Sensitivity &result)
{
    Column ofWeights, ofErrors;
    for (std::size_t i = 0; i < rows.product.consumers.size(); ++i) {
        const MatrixD &weight = *rows.product.consumers[i].weight;
        auto error = valuesOf(rows, sides.weightErrors[i], weight.rows());
        if (!error)
            return tl::make_unexpected(error.error());
        add(ofWeights, columnEnergies(weight));
        add(ofErrors, columnEnergies(*error));
        weightErrors.push_back(std::move(*error));
    }
    result.quantization.resize(ofWeights.size());
    for (std::size_t k = 0; k < ofWeights.size(); ++k)
        result.quantization[k] = x.errorEnergy[k] * ofWeights[k] + x.quantizedEnergy[k] * ofErrors[k];
    result.contribution = contributions(energy, ofWeights);
    return {};
}

/// Restores per channel and consumer, ||E|| and the ratio of the split.
Expected<void> addRestores(const EdgeData &data, const PartRows &rows, const QuantizedSides &sides, const ActivationSide &x,
                           const std::vector<MatrixD> &weightErrors, std::stop_token stop, Sensitivity &result)
{
    std::vector<std::int64_t> channels = channelsDescending(result.quantization);
    channels.resize(std::min(kRestored, channels.size()));
    Column restored(channels.size(), 0.0), perConsumer;
    for (std::size_t i = 0; i < weightErrors.size(); ++i) {
        if (stop.stop_requested())
            return cancelled(rows.product.subject);
        auto error = outputError(rows, sides, i);
        if (!error)
            return tl::make_unexpected(error.error());
        perConsumer.push_back(pairwiseSum(columnEnergies(*error)));
        if (auto done = addRestored(rows, x, weightErrors[i], i, *error, channels, restored); !done)
            return done;
    }
    const double total = pairwiseSum(perConsumer);
    result.damage = std::sqrt(total);
    if (total > 0)
        result.diagonalRatio = pairwiseSum(result.quantization) / total;
    for (std::size_t i = 0; i < channels.size() && total > 0; ++i)
        result.restore.push_back({channels[i], result.quantization[static_cast<std::size_t>(channels[i])], restored[i] / total});
    for (std::size_t i = 0; i < perConsumer.size(); ++i)
        result.consumers.push_back({data.parts().consumerNames[i], total > 0 ? perConsumer[i] / total : 0.0,
                                    result.output.perConsumer[i].relativeFrobenius});
    return {};
}

} // namespace

Expected<Sensitivity> sensitivityOf(const EdgeData &data, const std::vector<double> &channelEnergy, Part part,
                                    const SpecPair &specs, std::stop_token stop)
{
    auto rows = partRows(data, part);
    if (!rows)
        return tl::make_unexpected(rows.error());
    auto sides = quantizeSides(*rows, specs, {}, {}, stop);
    if (!sides)
        return tl::make_unexpected(sides.error());
    auto sums = productError(*rows, *sides, TermDetail::All, stop);
    if (!sums)
        return tl::make_unexpected(sums.error());
    auto x = activationSide(*rows, *sides);
    if (!x)
        return tl::make_unexpected(x.error());
    Sensitivity result;
    result.specs = specs;
    result.rows = static_cast<std::int64_t>(rows->placed.size());
    result.reference = std::sqrt(pairwiseSum(sums->rowReference));
    result.output = blockOf(data, *rows, std::move(*sums));
    std::vector<MatrixD> weightErrors;
    if (auto done = addChannels(*rows, *sides, *x, channelEnergy, weightErrors, result); !done)
        return tl::make_unexpected(done.error());
    if (auto done = addRestores(data, *rows, *sides, *x, weightErrors, stop, result); !done)
        return tl::make_unexpected(done.error());
    return result;
}

double EdgeDamage::relative() const
{
    if (reference > 0)
        return damage / reference;
    return damage > 0 ? std::numeric_limits<double>::infinity() : 0.0;
}

std::vector<LayerDamage> damageByLayer(const std::vector<std::pair<std::int64_t, EdgeDamage>> &edges)
{
    std::map<std::int64_t, LayerDamage> layers;
    for (const auto &[number, edge] : edges) {
        LayerDamage &layer = layers[number];
        layer.layer = number;
        layer.edges.push_back(edge);
    }
    std::vector<LayerDamage> table;
    for (auto &[number, layer] : layers) {
        std::ranges::stable_sort(layer.edges, std::greater<>(), &EdgeDamage::damage);
        EdgeDamage whole;
        for (const EdgeDamage &edge : layer.edges) {
            whole.damage = std::hypot(whole.damage, edge.damage);
            whole.reference = std::hypot(whole.reference, edge.reference);
        }
        layer.damage = whole.damage;
        layer.relative = whole.relative();
        table.push_back(std::move(layer));
    }
    std::ranges::stable_sort(table, std::greater<>(), &LayerDamage::damage);
    return table;
}

} // namespace planish
