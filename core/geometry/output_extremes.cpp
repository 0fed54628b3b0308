#include "core/geometry/output_extremes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace planish {

namespace {

constexpr std::size_t kBatch = 16; // rows between two looks at the stop token

std::size_t unitCount(const Statistics &statistics)
{
    return std::max<std::size_t>(1, statistics.units.size());
}

std::size_t unitOf(const Statistics &statistics, std::size_t rowIndex)
{
    return statistics.rowUnit.empty() ? 0 : static_cast<std::size_t>(statistics.rowUnit[rowIndex]);
}

void keepLarger(UnitExtreme &best, std::int64_t row, std::int64_t channel, double value)
{
    const double a = std::abs(value), b = std::abs(best.value);
    if (a > b || (a == b && best.channel >= 0 && std::pair(row, channel) < std::pair(best.fileRow, best.channel)))
        best = {row, channel, value};
}

std::vector<double> rowNorms(const MatrixD &w)
{
    std::vector<double> norms(w.rows(), 0.0);
    for (std::size_t n = 0; n < w.rows(); ++n) {
        for (double x : w.row(n))
            norms[n] += x * x;
        norms[n] = std::sqrt(norms[n]);
    }
    return norms;
}

double dot(std::span<const double> x, std::span<const double> w)
{
    // Four chains hide the latency of an addition; the order is fixed.
    double sum[4] = {0, 0, 0, 0};
    const std::size_t whole = x.size() / 4 * 4;
    for (std::size_t k = 0; k < whole; k += 4)
        for (std::size_t i = 0; i < 4; ++i)
            sum[i] += x[k + i] * w[k + i];
    for (std::size_t k = whole; k < x.size(); ++k)
        sum[0] += x[k] * w[k];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Rounding of the norms must not leave a row out.
constexpr double kSlack = 1.0 + 1e-9;

struct Search {
    const MatrixD &w;
    const Statistics &statistics;
    std::vector<double> norms;
    double largestNorm = 0;
    std::vector<UnitExtreme> best;
    double floor = 0;

    bool canMatter(std::size_t rowIndex) const
    {
        const double bound = std::sqrt(statistics.token.energy[rowIndex]) * largestNorm * kSlack;
        return bound > floor && bound >= std::abs(best[unitOf(statistics, rowIndex)].value);
    }
    void visit(std::size_t rowIndex, std::span<double> x)
    {
        for (double &value : x)
            value = std::isfinite(value) ? value : 0.0;
        UnitExtreme &mine = best[unitOf(statistics, rowIndex)];
        const double norm = std::sqrt(statistics.token.energy[rowIndex]) * kSlack;
        for (std::size_t n = 0; n < w.rows(); ++n) {
            if (norm * norms[n] <= floor || norm * norms[n] < std::abs(mine.value))
                continue;
            const double y = dot(x, w.row(n));
            if (std::abs(y) > floor)
                keepLarger(mine, statistics.token.row[rowIndex], static_cast<std::int64_t>(n), y);
        }
    }
};

} // namespace

Expected<std::vector<UnitExtreme>> inputExtremes(const Opened &opened, const Edge &edge, const Statistics &statistics,
                                                 double floor)
{
    std::vector<UnitExtreme> best(unitCount(statistics));
    for (std::size_t r = 0; r < statistics.token.row.size(); ++r) {
        const std::size_t u = unitOf(statistics, r);
        if (statistics.token.maxAbs[r] > floor && statistics.token.maxAbs[r] > best[u].value)
            best[u] = {statistics.token.row[r], -1, statistics.token.maxAbs[r]};
    }
    const DumpEdge *dumpEdge = opened.dump->info().findEdge(edge.id);
    for (UnitExtreme &extreme : best) {
        if (extreme.fileRow < 0 || !dumpEdge)
            continue;
        auto values = opened.dump->readRows(*dumpEdge, std::span(&extreme.fileRow, 1));
        if (!values)
            return tl::make_unexpected(values.error());
        const auto row = values->row(0);
        const auto found = std::find_if(row.begin(), row.end(), [&](double x) { return std::abs(x) == extreme.value; });
        if (found == row.end())
            continue;
        extreme.channel = found - row.begin();
        extreme.value = *found;
    }
    return best;
}

Expected<OutputExtremes> outputExtremes(const Opened &opened, const Edge &edge, const MatrixD &w, const Statistics &statistics,
                                        double floor, std::int64_t budget, std::stop_token stop)
{
    const DumpEdge *dumpEdge = opened.dump->info().findEdge(edge.id);
    Search search{w, statistics, rowNorms(w), 0.0, std::vector<UnitExtreme>(unitCount(statistics)), floor};
    for (double norm : search.norms)
        search.largestNorm = std::max(search.largestNorm, norm);
    std::vector<std::size_t> order(statistics.token.row.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return statistics.token.energy[a] > statistics.token.energy[b]; });
    std::size_t left = budget < 0 ? order.size() : static_cast<std::size_t>(budget);
    for (std::size_t at = 0; at < order.size() && left > 0 && dumpEdge;) {
        if (stop.stop_requested())
            return cancelled(edge.id.value);
        std::vector<std::size_t> batch;
        for (; at < order.size() && batch.size() < std::min(kBatch, left); ++at)
            if (search.canMatter(order[at]))
                batch.push_back(order[at]);
        std::sort(batch.begin(), batch.end());
        std::vector<std::int64_t> rows;
        for (std::size_t index : batch)
            rows.push_back(statistics.token.row[index]);
        if (rows.empty())
            break;
        auto values = opened.dump->readRows(*dumpEdge, rows);
        if (!values)
            return tl::make_unexpected(values.error());
        for (std::size_t i = 0; i < batch.size(); ++i)
            search.visit(batch[i], values->row(i));
        left -= batch.size();
    }
    OutputExtremes extremes{{}, std::move(search.best), MatrixD(unitCount(statistics), w.cols())};
    for (std::size_t u = 0; u < extremes.units.size(); ++u)
        if (extremes.units[u].channel >= 0)
            std::ranges::copy(w.row(static_cast<std::size_t>(extremes.units[u].channel)), extremes.weightRows.row(u).begin());
    return extremes;
}

} // namespace planish
