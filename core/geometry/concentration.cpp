#include "core/geometry/concentration.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/measure/error_sums.h"

namespace planish {

namespace {

// Rounded up, and exact where .01 K is an integer: K = 100 gives 1 although .01 is not a binary number.
std::size_t onePercent(std::size_t channels)
{
    return std::max<std::size_t>(1, (channels + 99) / 100);
}

} // namespace

std::vector<std::size_t> channelsByEnergy(const Statistics &statistics)
{
    const auto &energy = statistics.channel.energy;
    std::vector<std::size_t> order(energy.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return energy[a] > energy[b]; });
    return order;
}

std::vector<double> concentrationCurve(const Statistics &statistics)
{
    const double total = statistics.energy();
    if (!(total > 0.0) || !std::isfinite(total))
        return {};
    std::vector<double> curve;
    curve.reserve(statistics.channel.energy.size());
    double sum = 0.0;
    for (std::size_t k : channelsByEnergy(statistics)) {
        sum += statistics.channel.energy[k];
        curve.push_back(std::min(1.0, sum / total));
    }
    return curve;
}

Concentration concentrationOf(const Statistics &statistics)
{
    Concentration concentration;
    const std::vector<double> curve = concentrationCurve(statistics);
    concentration.r1pct = onePercent(statistics.channels);
    if (curve.empty())
        return concentration;
    concentration.c1 = curve.front();
    concentration.c8 = curve[std::min<std::size_t>(8, curve.size()) - 1];
    concentration.c1pct = curve[concentration.r1pct - 1];
    return concentration;
}

} // namespace planish
