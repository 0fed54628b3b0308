#include "core/geometry/edge_weights.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/geometry/output_extremes.h"
#include "core/measure/magnitude_bins.h"
#include "kernels/cpu/workers.h"

namespace planish {

namespace {

// A finding list longer than this is no help; the largest are kept.
constexpr std::size_t kMostOutliers = 1000;

// Row standard deviation about the row's mean, population form.
double deviationOf(std::span<const double> row)
{
    double mean = 0.0, sum = 0.0;
    for (double w : row)
        mean += w;
    mean /= static_cast<double>(row.size());
    for (double w : row)
        sum += (w - mean) * (w - mean);
    return std::sqrt(sum / static_cast<double>(row.size()));
}

/// body(first, end) for fixed pieces of [0, count), side by side: results never depend on the number of threads.
void overPieces(std::size_t count, const std::function<void(std::size_t, std::size_t)> &body)
{
    constexpr std::size_t kPiece = 256;
    cpu::Workers().forEach((count + kPiece - 1) / kPiece,
                           [&](std::size_t piece) { body(piece * kPiece, std::min(count, (piece + 1) * kPiece)); });
}

void addRowOutliers(const std::string &consumer, const MatrixD &w, double sigma, std::vector<WeightOutlier> &found)
{
    std::vector<double> deviations(w.rows());
    overPieces(w.rows(), [&](std::size_t first, std::size_t end) {
        for (std::size_t n = first; n < end; ++n) {
            const double deviation = deviationOf(w.row(n));
            const bool any = std::ranges::any_of(w.row(n), [&](double x) { return std::abs(x) / deviation >= sigma; });
            deviations[n] = any ? deviation : 0.0;
        }
    });
    for (std::size_t n = 0; n < w.rows(); ++n) {
        const double deviation = deviations[n];
        if (!(deviation > 0.0))
            continue;
        for (std::size_t k = 0; k < w.cols(); ++k)
            if (const double ratio = std::abs(w(n, k)) / deviation; ratio >= sigma)
                found.push_back({consumer, static_cast<std::int64_t>(n), static_cast<std::int64_t>(k), w(n, k), ratio, false});
    }
}

void addColumnOutliers(const std::string &consumer, const MatrixD &w, double factor, std::vector<WeightOutlier> &found)
{
    std::vector<double> columnMax(w.cols(), 0.0);
    std::vector<std::size_t> at(w.cols(), 0);
    overPieces(w.cols(), [&](std::size_t first, std::size_t end) {
        for (std::size_t n = 0; n < w.rows(); ++n)
            for (std::size_t k = first; k < end; ++k)
                if (std::abs(w(n, k)) > columnMax[k]) {
                    columnMax[k] = std::abs(w(n, k));
                    at[k] = n;
                }
    });
    const double median = medianMagnitude(columnMax).value_or(0.0);
    for (std::size_t k = 0; k < w.cols() && median > 0.0; ++k) {
        const bool listed = std::any_of(found.begin(), found.end(), [&](const WeightOutlier &o) {
            return o.consumer == consumer && o.row == static_cast<std::int64_t>(at[k]) &&
                   o.column == static_cast<std::int64_t>(k);
        });
        if (columnMax[k] >= factor * median && !listed)
            found.push_back({consumer, static_cast<std::int64_t>(at[k]), static_cast<std::int64_t>(k), w(at[k], k),
                             columnMax[k] / median, true});
    }
}

void keepLargest(std::vector<WeightOutlier> &found)
{
    std::stable_sort(found.begin(), found.end(), [](const auto &a, const auto &b) { return a.ratio > b.ratio; });
    if (found.size() > kMostOutliers)
        found.resize(kMostOutliers);
}

void addColumns(const MatrixD &w, EdgeWeights &into)
{
    into.maxAbs.resize(w.cols(), 0.0);
    into.energy.resize(w.cols(), 0.0);
    overPieces(w.cols(), [&](std::size_t first, std::size_t end) {
        for (std::size_t n = 0; n < w.rows(); ++n)
            for (std::size_t k = first; k < end; ++k) {
                into.maxAbs[k] = std::max(into.maxAbs[k], std::abs(w(n, k)));
                into.energy[k] += w(n, k) * w(n, k);
            }
    });
}

} // namespace

Expected<MatrixD> readConsumer(const Opened &opened, const Consumer &consumer)
{
    auto whole = opened.weights->read(consumer.tensor);
    if (!whole || (consumer.rows.begin == 0 && consumer.rows.end < 0))
        return whole;
    const auto rows = static_cast<std::int64_t>(whole->rows());
    const std::int64_t end = consumer.rows.end < 0 ? rows : consumer.rows.end;
    if (consumer.rows.begin < 0 || end > rows || consumer.rows.begin >= end)
        return dataError(consumer.tensor.value,
                         "rows " + std::to_string(consumer.rows.begin) + ":" + std::to_string(end) + " are not in it",
                         "a range inside its " + std::to_string(rows) + " rows");
    MatrixD part(static_cast<std::size_t>(end - consumer.rows.begin), whole->cols());
    for (std::size_t n = 0; n < part.rows(); ++n)
        std::ranges::copy(whole->row(static_cast<std::size_t>(consumer.rows.begin) + n), part.row(n).begin());
    return part;
}

Expected<EdgeWeights> scanEdgeWeights(const Opened &opened, const Edge &edge, const Statistics &statistics,
                                      const RuleThresholds &thresholds, const RowRequest &rows, std::stop_token stop)
{
    EdgeWeights found;
    const bool outputs = edge.site == "mlp_down" && statistics.maxAbs > thresholds("super_weight_candidate.input");
    for (const Consumer &consumer : edge.consumers) {
        if (stop.stop_requested())
            return cancelled(edge.id.value);
        if (!opened.weights || !consumer.present) {
            found.missing.push_back(consumer.tensor.value);
            continue;
        }
        auto w = readConsumer(opened, consumer);
        if (!w)
            return tl::make_unexpected(w.error());
        if (w->cols() != statistics.channels)
            return dataError(consumer.tensor.value, "it reads " + std::to_string(w->cols()) + " channels",
                             "the " + std::to_string(statistics.channels) + " of " + edge.id.value);
        addColumns(*w, found);
        std::vector<WeightOutlier> outliers;
        addRowOutliers(consumer.tensor.value, *w, thresholds("weight_outlier.sigma"), outliers);
        keepLargest(outliers);
        addColumnOutliers(consumer.tensor.value, *w, thresholds("weight_outlier.ratio"), outliers);
        found.outliers.insert(found.outliers.end(), outliers.begin(), outliers.end());
        if (!outputs)
            continue;
        auto extremes =
            outputExtremes(opened, edge, *w, statistics, thresholds("super_weight_candidate.output"), rows.budget, stop);
        if (!extremes)
            return tl::make_unexpected(extremes.error());
        extremes->consumer = consumer.tensor.value;
        found.outputs.push_back(std::move(*extremes));
    }
    if (!found.outputs.empty()) {
        auto inputs = inputExtremes(opened, edge, statistics, thresholds("super_weight_candidate.input"));
        if (!inputs)
            return tl::make_unexpected(inputs.error());
        found.inputs = std::move(*inputs);
    }
    return found;
}

} // namespace planish
