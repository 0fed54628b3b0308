#include "core/evaluate/intervention_effect.h"

#include <algorithm>
#include <numeric>

#include "core/methods/kernel_result.h"
#include "core/methods/residual_merge.h"

namespace planish {

namespace {

// Up to here ||D W^T||^2 comes from two small Gram matrices, beyond from the product itself.
constexpr std::size_t kGramColumns = 64;

double meanOfRow(const MatrixD &weight, std::size_t row)
{
    return pairwiseSum(weight.row(row)) / static_cast<double>(weight.cols());
}

/// Columns^T columns of the given columns.
MatrixD gram(const MatrixD &matrix, const std::vector<std::size_t> &columns)
{
    MatrixD result(columns.size(), columns.size());
    for (std::size_t r = 0; r < matrix.rows(); ++r)
        for (std::size_t i = 0; i < columns.size(); ++i)
            for (std::size_t j = 0; j < columns.size(); ++j)
                result(i, j) += matrix(r, columns[i]) * matrix(r, columns[j]);
    return result;
}

Expected<ResidentPtr> difference(const Backend &backend, const MatrixD &after, const MatrixD &before, const std::string &subject)
{
    MatrixD delta(after.rows(), after.cols());
    std::ranges::transform(after.values(), before.values(), delta.values().begin(), std::minus<>());
    return fromKernel(backend.upload(delta.view()), subject);
}

} // namespace

double FullPrecisionAction::valueOf(double old, double mean) const
{
    if (m_action.kind == ActionKind::Zero)
        return 0.0;
    return m_action.kind == ActionKind::Mean ? mean : std::clamp(old, -m_action.bound, m_action.bound);
}

ChangedMatrices FullPrecisionAction::apply(const Place &place) const
{
    ChangedMatrices changed;
    const auto changedX = [&](const std::shared_ptr<const MatrixD> &x, const PlacedRows &rows) {
        const Elements elements = elementsOf(place, rows, x->cols());
        if (elements.empty())
            return std::shared_ptr<const MatrixD>();
        auto copy = std::make_shared<MatrixD>(*x);
        for (const std::size_t m : elements.rows)
            for (const std::size_t k : elements.columns)
                (*copy)(m, k) = valueOf((*copy)(m, k), m_means[k]);
        return std::shared_ptr<const MatrixD>(std::move(copy));
    };
    changed.x = changedX(m_rows.product.x, m_rows.placed);
    changed.ranges = changedX(m_rows.product.rangeRows, m_rows.ranges);
    changed.weights.resize(m_rows.product.consumers.size());
    if (place.kind == TargetKind::Weight) {
        auto copy = std::make_shared<MatrixD>(*m_rows.product.consumers[place.consumer].weight);
        (*copy)(static_cast<std::size_t>(place.row), static_cast<std::size_t>(place.channel)) += weightChange(place);
        changed.weights[place.consumer] = std::move(copy);
    }
    return changed;
}

double FullPrecisionAction::weightChange(const Place &place) const
{
    const MatrixD &weight = *m_rows.product.consumers[place.consumer].weight;
    const auto row = static_cast<std::size_t>(place.row);
    const double old = weight(row, static_cast<std::size_t>(place.channel));
    return valueOf(old, meanOfRow(weight, row)) - old;
}

Expected<ResidualSums> FullPrecisionAction::sums(const ChangedMatrices &changed, std::stop_token stop) const
{
    const ProductRows &product = m_rows.product;
    const Backend &backend = *product.backend;
    ResidentPtr moved = product.resident, delta;
    if (changed.x) {
        auto uploaded = fromKernel(backend.upload(changed.x->view()), product.subject);
        auto difference = planish::difference(backend, *changed.x, *product.x, product.subject);
        if (!uploaded || !difference)
            return tl::make_unexpected(uploaded ? difference.error() : uploaded.error());
        moved = std::move(*uploaded);
        delta = std::move(*difference);
    }
    ResidualSums stacked;
    for (std::size_t i = 0; i < product.consumers.size(); ++i) {
        const ResidentConsumer &consumer = product.consumers[i];
        ResidentPtr weightDelta;
        if (changed.weights[i]) {
            auto difference = planish::difference(backend, *changed.weights[i], *consumer.weight, product.subject);
            if (!difference)
                return tl::make_unexpected(difference.error());
            weightDelta = std::move(*difference);
        }
        auto sums = fromKernel(backend.residual(delta.get(), *product.resident, *moved, weightDelta.get(), *consumer.resident,
                                                *consumer.reference, TermDetail::All, stop),
                               product.subject);
        if (!sums)
            return sums;
        appendConsumer(stacked, *sums);
    }
    return stacked;
}

MatrixD FullPrecisionAction::changesOf(const Elements &elements) const
{
    const MatrixD &x = *m_rows.product.x;
    MatrixD changes(elements.rows.size(), elements.columns.size());
    for (std::size_t i = 0; i < elements.rows.size(); ++i) {
        for (std::size_t j = 0; j < elements.columns.size(); ++j) {
            const double old = x(elements.rows[i], elements.columns[j]);
            changes(i, j) = valueOf(old, m_means[elements.columns[j]]) - old;
        }
    }
    return changes;
}

double FullPrecisionAction::columnsError2(const Elements &elements, const MatrixD &changes) const
{
    std::vector<std::size_t> all(changes.cols());
    std::iota(all.begin(), all.end(), std::size_t{0});
    const MatrixD ofChanges = gram(changes, all);
    std::vector<double> terms;
    for (const ResidentConsumer &consumer : m_rows.product.consumers) {
        const MatrixD ofWeights = gram(*consumer.weight, elements.columns);
        for (std::size_t i = 0; i < ofChanges.size(); ++i)
            terms.push_back(ofChanges.data()[i] * ofWeights.data()[i]);
    }
    return std::max(0.0, pairwiseSum(terms));
}

Expected<double> FullPrecisionAction::productError2(const MatrixD &changes) const
{
    const ProductRows &product = m_rows.product;
    auto resident = fromKernel(product.backend->upload(changes.view()), product.subject);
    if (!resident)
        return tl::make_unexpected(resident.error());
    double total = 0.0;
    for (const ResidentConsumer &consumer : product.consumers) {
        auto error = fromKernel(product.backend->product(**resident, *consumer.resident), product.subject);
        auto values =
            error ? fromKernel(product.backend->download(**error), product.subject) : tl::make_unexpected(error.error());
        if (!values)
            return tl::make_unexpected(values.error());
        for (double &value : values->values())
            value *= value;
        total += pairwiseSum(values->values());
    }
    return total;
}

Expected<double> FullPrecisionAction::error2(const Place &place) const
{
    const MatrixD &x = *m_rows.product.x;
    if (place.kind == TargetKind::Weight) {
        const double change = weightChange(place);
        const MatrixD energy = gram(x, {static_cast<std::size_t>(place.channel)});
        return change * change * energy(0, 0);
    }
    const Elements elements = elementsOf(place, m_rows.placed, x.cols());
    const MatrixD changes = changesOf(elements);
    if (elements.columns.size() <= kGramColumns)
        return columnsError2(elements, changes);
    if (elements.columns.size() == x.cols())
        return productError2(changes);
    MatrixD wide(x.rows(), x.cols());
    for (std::size_t i = 0; i < elements.rows.size(); ++i)
        for (std::size_t j = 0; j < elements.columns.size(); ++j)
            wide(elements.rows[i], elements.columns[j]) = changes(i, j);
    return productError2(wide);
}

} // namespace planish
