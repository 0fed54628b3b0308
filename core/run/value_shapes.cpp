#include "core/run/value_shapes.h"

#include <algorithm>
#include <cmath>

#include "core/evaluate/edge_data.h"
#include "core/methods/product_weights.h"

namespace planish {

namespace {

constexpr std::size_t kBins = 96;
constexpr double kDecades = 5; // below the largest maximum by more, values are counted but not drawn

std::vector<double> magnitudes(const MatrixD &matrix)
{
    std::vector<double> values;
    values.reserve(matrix.size());
    for (const double value : matrix.values())
        values.push_back(std::abs(value));
    return values;
}

double medianOf(std::vector<double> values)
{
    if (values.empty())
        return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

std::vector<double> sharesOf(const std::vector<double> &values, double low, double high)
{
    std::vector<double> shares(kBins, 0.0);
    const double width = std::log(high / low) / static_cast<double>(kBins);
    std::vector<std::size_t> counts(kBins, 0);
    for (const double value : values) {
        if (value < low)
            continue;
        const double place = std::floor(std::log(value / low) / width);
        ++counts[static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(kBins - 1)))];
    }
    for (std::size_t i = 0; i < kBins; ++i)
        shares[i] = static_cast<double>(counts[i]) / static_cast<double>(values.size());
    return shares;
}

} // namespace

Expected<ValueShapes> valueShapes(const Engine &engine, const Opened &opened, const EdgeId &edge, const EvaluateOptions &options,
                                  const std::vector<std::shared_ptr<const Rewrite>> &rewrites, std::stop_token stop)
{
    auto data = engine.edgeData(opened, edge, options, stop);
    if (!data)
        return tl::make_unexpected(data.error());
    const EdgeParts &parts = (*data)->parts();
    std::vector<std::vector<double>> values;
    ValueShapes shapes{.rows = static_cast<std::int64_t>(parts.heldOut.sharedX()->rows())};
    double high = 0;
    for (const auto &rewrite : rewrites) {
        if (stop.stop_requested())
            return cancelled(edge.value);
        auto x = transformedMatrix(*parts.backend, parts.heldOut.sharedX(), rewrite ? rewrite->input : Transform(), edge.value);
        if (!x)
            return tl::make_unexpected(x.error());
        values.push_back(magnitudes(**x));
        shapes.maxima.push_back(values.back().empty() ? 0 : *std::max_element(values.back().begin(), values.back().end()));
        shapes.medians.push_back(medianOf(values.back()));
        high = std::max(high, shapes.maxima.back());
    }
    if (!(high > 0))
        return dataError(edge.value, "all values of its held-out rows are zero", "values to draw");
    const double top = high * 1.0000001, low = top * std::pow(10.0, -kDecades);
    for (std::size_t i = 0; i <= kBins; ++i)
        shapes.edges.push_back(low * std::pow(top / low, static_cast<double>(i) / static_cast<double>(kBins)));
    for (const auto &each : values) {
        shapes.shares.push_back(sharesOf(each, low, top));
        const auto under = std::count_if(each.begin(), each.end(), [low](double value) { return value < low; });
        shapes.below.push_back(static_cast<double>(under) / static_cast<double>(each.size()));
    }
    return shapes;
}

} // namespace planish
