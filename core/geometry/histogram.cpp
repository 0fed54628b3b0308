#include "core/geometry/histogram.h"

#include <algorithm>
#include <cmath>

#include "core/measure/counted_rows.h"
#include "core/measure/magnitude_bins.h"

namespace planish {

namespace {

// Magnitudes of f16 span 4e-8 to 65504; a picture of more decades is mostly empty.
constexpr double kDecades = 1e-8;

Expected<Histogram> fromFile(const Dump &dump, const DumpEdge &edge, const Statistics &statistics, ValueSign sign,
                             Histogram empty, std::stop_token stop)
{
    const CountedRows rows(dump, edge, statistics.token.row);
    std::vector<double> row(rows.channels());
    auto done = rows.visit(
        [&](const RawRows &raw) {
            for (std::size_t r = 0; r < raw.rows; ++r) {
                widen(raw.kind, raw.data + r * raw.strideBytes, row.size(), row.data());
                for (double x : row)
                    addTo(empty, sign == ValueSign::Magnitude ? std::abs(x) : x);
            }
        },
        stop);
    if (!done)
        return tl::make_unexpected(done.error());
    return empty;
}

} // namespace

Histogram emptyHistogram(BinScale scale, double low, double high, std::size_t bins)
{
    Histogram histogram;
    histogram.scale = scale;
    bins = std::max<std::size_t>(1, bins);
    if (!(high > low)) {
        const double half = low == 0.0 ? 0.5 : 0.5 * std::abs(low);
        high = low + half;
        low -= half;
        bins = 1;
    }
    for (std::size_t b = 0; b <= bins; ++b) {
        const double t = static_cast<double>(b) / static_cast<double>(bins);
        histogram.edges.push_back(scale == BinScale::Linear ? low + t * (high - low) : low * std::pow(high / low, t));
    }
    histogram.edges.back() = high;
    histogram.counts.assign(bins, 0);
    return histogram;
}

void addTo(Histogram &histogram, double value, std::uint64_t count)
{
    if (!std::isfinite(value)) {
        histogram.nonFinite += count;
        return;
    }
    const double low = histogram.edges.front(), high = histogram.edges.back();
    if (value < low) {
        histogram.below += count;
        return;
    }
    if (value > high) {
        histogram.above += count;
        return;
    }
    const double bins = static_cast<double>(histogram.counts.size());
    const double t =
        histogram.scale == BinScale::Linear ? (value - low) / (high - low) : std::log(value / low) / std::log(high / low);
    auto bin = std::min(static_cast<std::size_t>(std::max(0.0, t * bins)), histogram.counts.size() - 1);
    // The formula and the printed edges may disagree by a rounding; the edges are what a reader sees.
    while (bin > 0 && value < histogram.edges[bin])
        --bin;
    while (bin + 1 < histogram.counts.size() && value >= histogram.edges[bin + 1])
        ++bin;
    histogram.counts[bin] += count;
}

Histogram histogramOf(std::span<const double> values, std::size_t bins, BinScale scale)
{
    double low = 0.0, high = 0.0;
    bool any = false;
    for (double value : values) {
        if (!std::isfinite(value) || (scale == BinScale::Logarithmic && value <= 0.0))
            continue;
        low = any ? std::min(low, value) : value;
        high = any ? std::max(high, value) : value;
        any = true;
    }
    Histogram histogram = emptyHistogram(any ? scale : BinScale::Linear, low, high, bins);
    for (double value : values)
        addTo(histogram, value);
    return histogram;
}

Expected<Histogram> valueHistogram(const Dump &dump, const DumpEdge &edge, const Statistics &statistics,
                                   const ValueHistogramRequest &request, std::stop_token stop)
{
    const double top = statistics.maxAbs > 0.0 ? statistics.maxAbs : 1.0;
    if (request.sign == ValueSign::Signed) {
        if (request.scale == BinScale::Logarithmic)
            return usageError(edge.id.value, "signed values have no logarithmic axis", "magnitudes, or a linear axis");
        return fromFile(dump, edge, statistics, request.sign, emptyHistogram(request.scale, -top, top, request.bins), stop);
    }
    const double low = request.scale == BinScale::Linear ? 0.0 : std::max(top * kDecades, 1e-300);
    Histogram histogram = emptyHistogram(request.scale, low, top, request.bins);
    if (statistics.histogram.empty())
        return fromFile(dump, edge, statistics, request.sign, std::move(histogram), stop);
    // 16-bit inputs: every magnitude is already counted, no second pass.
    for (std::size_t bin = 0; bin < statistics.histogram.size(); ++bin)
        if (statistics.histogram[bin] > 0)
            addTo(histogram, binMagnitude(statistics.kind, bin), statistics.histogram[bin]);
    return histogram;
}

} // namespace planish
