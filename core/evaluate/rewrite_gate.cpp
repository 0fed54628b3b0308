#include "core/evaluate/rewrite_gate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/methods/kernel_result.h"
#include "core/methods/product_weights.h"

namespace planish {
namespace {

constexpr std::int64_t kEquivalenceRows = 256;                                // evaluation.md 1.8
constexpr double kKappaRefused = 1e4, kKappaWarned = 100, kScaleWarned = 1e4; // plan.md

std::string shortText(double value)
{
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3g", value);
    return text.data();
}

Expected<void> checkConditioning(Evaluation &evaluation, const Transform &transform)
{
    evaluation.conditioning = transform.conditioning();
    const Conditioning &c = *evaluation.conditioning;
    const std::string &edge = evaluation.edge.value;
    if (!std::isfinite(c.kappa) || !std::isfinite(c.kappaNonDiagonal))
        return refusal(edge, "a factor is not finite or not invertible", "a finite, invertible transform", "non_finite_factor");
    if (c.kappaNonDiagonal > kKappaRefused)
        return refusal(edge, "kappa " + shortText(c.kappaNonDiagonal) + " of the non-diagonal part", "at most 1e4",
                       "conditioning");
    if (c.kappaNonDiagonal > kKappaWarned)
        evaluation.notes.push_back("kappa " + shortText(c.kappaNonDiagonal) + " is above 100");
    if (c.scaleMin != 0 && std::abs(c.scaleMax / c.scaleMin) > kScaleWarned)
        evaluation.notes.push_back("scales differ by a factor of " + shortText(std::abs(c.scaleMax / c.scaleMin)) +
                                   ", above 1e4");
    return {};
}

MatrixD pickRows(const MatrixD &x, const std::vector<std::size_t> &rows)
{
    MatrixD part(rows.size(), x.cols());
    for (std::size_t i = 0; i < rows.size(); ++i)
        std::ranges::copy(x.row(rows[i]), part.row(i).begin());
    return part;
}

/// At most 256 of the held-out rows, taken as the budget takes them.
std::vector<std::size_t> gateRows(const EdgeParts &parts)
{
    const auto &all = parts.heldOut.rows();
    const auto picked = withinBudget(all, parts.dump->info().tokens, parts.dumpEdge, kEquivalenceRows);
    std::vector<std::size_t> index;
    for (const std::int64_t row : picked)
        index.push_back(static_cast<std::size_t>(std::ranges::find(all, row) - all.begin()));
    return index;
}

/// b' = b + W c with the original W; null when there is neither bias nor shift.
std::shared_ptr<const MatrixD> shiftedBias(const ConsumerWeights &consumer, const std::vector<double> &shift)
{
    if (shift.empty())
        return consumer.bias;
    auto bias = consumer.bias ? std::make_shared<MatrixD>(*consumer.bias) : std::make_shared<MatrixD>(1, consumer.weight->rows());
    for (std::size_t n = 0; n < bias->cols(); ++n)
        for (std::size_t k = 0; k < shift.size(); ++k)
            (*bias)(0, n) += (*consumer.weight)(n, k) * shift[k];
    return bias;
}

/// Bias-free keys in attention without RoPE (Whisper) may stay without a bias: a constant per query leaves softmax alone
/// (diagonal.md 0.5).
bool staysBiasFree(const Opened &opened, const ConsumerWeights &consumer)
{
    const auto &family = opened.graph.family;
    return family && !consumer.bias && std::ranges::find(family->biasFree, consumer.consumer.role) != family->biasFree.end();
}

/// W' of every consumer in double, by the same backend that evaluates; low-rank branches are part of the quantized side.
Expected<std::vector<MatrixD>> transformedMatrices(const EdgeParts &parts, const Rewrite &rewrite)
{
    std::vector<MatrixD> weights;
    for (const ResidentConsumer &consumer : parts.heldOutProduct.consumers) {
        auto moved = transformed(*parts.backend, consumer.resident, rewrite.input, Side::Weight, parts.edge.id.value);
        if (!moved)
            return tl::make_unexpected(moved.error());
        auto matrix = fromKernel(parts.backend->download(**moved), parts.edge.id.value);
        if (!matrix)
            return tl::make_unexpected(matrix.error());
        weights.push_back(std::move(*matrix));
    }
    return weights;
}

/// ||X W~^T - X W^T|| / ||X W^T|| over all consumers and held-out rows.
Expected<double> functionChange(const EdgeParts &parts, const Rewrite &rewrite)
{
    double change = 0, reference = 0;
    const Backend &backend = *parts.backend;
    const std::string &subject = parts.edge.id.value;
    for (std::size_t i = 0; i < parts.consumers.size(); ++i) {
        const ResidentConsumer &consumer = parts.heldOutProduct.consumers[i];
        auto y = fromKernel(backend.download(*consumer.reference), subject);
        if (!y)
            return tl::make_unexpected(y.error());
        for (const double value : y->values())
            reference += value * value;
        if (i >= rewrite.replaced.size() || !rewrite.replaced[i])
            continue;
        auto weight = fromKernel(backend.upload(rewrite.replaced[i]->view()), subject);
        if (!weight)
            return tl::make_unexpected(weight.error());
        auto product = fromKernel(backend.product(*parts.heldOutProduct.resident, **weight), subject);
        if (!product)
            return tl::make_unexpected(product.error());
        auto changed = fromKernel(backend.download(**product), subject);
        if (!changed)
            return tl::make_unexpected(changed.error());
        for (std::size_t e = 0; e < y->size(); ++e)
            change += (changed->data()[e] - y->data()[e]) * (changed->data()[e] - y->data()[e]);
    }
    return std::sqrt(change / reference);
}

Expected<void> checkEquivalence(const Opened &opened, const EdgeParts &parts, Evaluation &evaluation)
{
    const Rewrite &rewrite = *evaluation.rewrite;
    const MatrixD x = pickRows(parts.heldOut.x(), gateRows(parts));
    auto xPrime = transformedMatrix(*parts.backend, std::make_shared<const MatrixD>(x), rewrite.input, parts.edge.id.value);
    if (!xPrime)
        return tl::make_unexpected(xPrime.error());
    auto weights = transformedMatrices(parts, rewrite);
    if (!weights)
        return tl::make_unexpected(weights.error());
    std::vector<EquivalencePair> pairs;
    std::vector<std::shared_ptr<const MatrixD>> biases;
    for (std::size_t i = 0; i < parts.consumers.size(); ++i) {
        const ConsumerWeights &consumer = parts.consumers[i];
        const bool exempt = !rewrite.input.shift.empty() && staysBiasFree(opened, consumer);
        biases.push_back(exempt ? nullptr : shiftedBias(consumer, rewrite.input.shift));
        pairs.push_back({.name = parts.consumerNames[i],
                         .weight = consumer.weight.get(),
                         .transformed = &(*weights)[i],
                         .bias = consumer.bias.get(),
                         .transformedBias = biases.back().get(),
                         .storedType = parts.storedTypes[i],
                         .exemptConstantRow = exempt});
    }
    auto equivalence =
        measureEquivalence(*parts.backend, x.view(), (*xPrime)->view(), pairs, evaluation.conditioning->kappaNonDiagonal);
    if (!equivalence)
        return tl::make_unexpected(equivalence.error());
    evaluation.equivalence = *equivalence;
    if (!equivalence->passed)
        return refusal(parts.edge.id.value,
                       "equivalence failed on " + equivalence->worstConsumer + ": relative error " +
                           shortText(equivalence->relativeFrobenius),
                       "at most " + shortText(equivalence->threshold), "equivalence_failed");
    if (!equivalence->storedPassed)
        evaluation.notes.push_back("stored in " + equivalence->storedDtype + " the relative error is " +
                                   shortText(equivalence->storedRelativeFrobenius) + ", above " +
                                   shortText(equivalence->storedThreshold));
    return {};
}

} // namespace

Expected<void> passGate(const Opened &opened, const EdgeData &data, Evaluation &evaluation)
{
    const EdgeParts &parts = data.parts();
    if (auto conditioned = checkConditioning(evaluation, evaluation.rewrite->input); !conditioned)
        return conditioned;
    if (!evaluation.rewrite->changesFunction)
        return checkEquivalence(opened, parts, evaluation);
    auto change = functionChange(parts, *evaluation.rewrite);
    if (!change)
        return tl::make_unexpected(change.error());
    evaluation.functionChange = *change;
    return {};
}

} // namespace planish
