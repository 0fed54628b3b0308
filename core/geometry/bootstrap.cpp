#include "core/geometry/bootstrap.h"

#include <algorithm>
#include <cmath>

#include "core/measure/magnitude_bins.h"
#include "core/transform/random_stream.h"

namespace planish {

namespace {

constexpr std::size_t kDraws = 20; // evaluation.md 3

} // namespace

double unitMaxAbs(const UnitSums &unit, std::size_t k)
{
    return unit.maximum[k] >= unit.minimum[k] ? std::max(std::abs(unit.maximum[k]), std::abs(unit.minimum[k])) : 0.0;
}

BootstrapDraws::BootstrapDraws(const Statistics &statistics, std::uint64_t seed, std::string_view edge) : m_statistics(statistics)
{
    const std::size_t units = statistics.units.size();
    if (units < 2)
        return;
    RandomStream stream(seed, "bootstrap", edge);
    m_weight.assign(kDraws, std::vector<std::uint32_t>(units, 0));
    for (auto &weights : m_weight)
        for (std::size_t i = 0; i < units; ++i)
            ++weights[stream.below(units)];
    m_median.resize(kDraws);
}

std::uint64_t BootstrapDraws::rows(std::size_t draw) const
{
    std::uint64_t rows = 0;
    for (std::size_t u = 0; u < m_statistics.units.size(); ++u)
        rows += weight(draw, u) * m_statistics.units[u].rows;
    return rows;
}

double BootstrapDraws::median(std::size_t draw) const
{
    if (!m_median[draw]) {
        std::vector<std::uint64_t> counts(kMagnitudeBins, 0);
        for (std::size_t u = 0; u < m_statistics.units.size(); ++u) {
            const auto &histogram = m_statistics.units[u].histogram;
            if (const std::uint64_t w = weight(draw, u); w > 0)
                for (std::size_t b = 0; b < histogram.size(); ++b)
                    counts[b] += w * histogram[b];
        }
        m_median[draw] = medianOfBins(m_statistics.kind, counts).value_or(0.0);
    }
    return *m_median[draw];
}

double BootstrapDraws::sum(std::size_t draw, const std::function<double(const UnitSums &)> &value) const
{
    double sum = 0.0;
    for (std::size_t u = 0; u < m_statistics.units.size(); ++u)
        if (weight(draw, u) > 0)
            sum += weight(draw, u) * value(m_statistics.units[u]);
    return sum;
}

bool BootstrapDraws::hasRow(std::size_t draw, std::size_t rowIndex) const
{
    return weight(draw, static_cast<std::size_t>(m_statistics.rowUnit[rowIndex])) > 0;
}

std::vector<double> BootstrapDraws::channelMaxAbs(std::size_t draw) const
{
    std::vector<double> maxAbs(m_statistics.channels, 0.0);
    for (std::size_t u = 0; u < m_statistics.units.size(); ++u)
        if (weight(draw, u) > 0)
            for (std::size_t k = 0; k < maxAbs.size(); ++k)
                maxAbs[k] = std::max(maxAbs[k], unitMaxAbs(m_statistics.units[u], k));
    return maxAbs;
}

std::vector<double> BootstrapDraws::channelEnergy(std::size_t draw) const
{
    std::vector<double> energy(m_statistics.channels, 0.0);
    for (std::size_t u = 0; u < m_statistics.units.size(); ++u)
        if (weight(draw, u) > 0)
            for (std::size_t k = 0; k < energy.size(); ++k)
                energy[k] += weight(draw, u) * m_statistics.units[u].energy[k];
    return energy;
}

std::optional<double> BootstrapDraws::share(const std::function<bool(std::size_t draw)> &recurs) const
{
    if (size() == 0)
        return std::nullopt;
    std::size_t hits = 0;
    for (std::size_t d = 0; d < size(); ++d)
        hits += recurs(d);
    return static_cast<double>(hits) / static_cast<double>(size());
}

} // namespace planish
