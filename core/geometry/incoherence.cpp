#include "core/geometry/incoherence.h"

#include <algorithm>
#include <cmath>

#include "core/measure/block_fold.h"
#include "core/measure/magnitude_bins.h"

namespace planish {

double incoherence(std::span<const double> row)
{
    return incoherenceOf(row);
}

IncoherenceProfile incoherenceProfile(const Statistics &statistics, std::size_t bins)
{
    IncoherenceProfile profile;
    profile.bound = std::sqrt(static_cast<double>(statistics.channels));
    profile.zeroRows = statistics.zeroRows;
    profile.mean = statistics.meanIncoherence().value_or(0.0);
    profile.histogram = emptyHistogram(BinScale::Linear, 1.0, std::max(profile.bound, 1.0), bins);
    for (std::size_t r = 0; r < statistics.token.incoherence.size(); ++r) {
        const double mu = statistics.token.incoherence[r];
        if (std::isnan(mu))
            continue;
        // A flat row may come out a rounding below 1, a single spike a rounding above sqrt K.
        addTo(profile.histogram, std::clamp(mu, 1.0, profile.bound));
        if (mu > profile.maximum) {
            profile.maximum = mu;
            profile.maximumRow = statistics.token.row[r];
        }
    }
    profile.median = medianMagnitude(statistics.token.incoherence).value_or(0.0);
    return profile;
}

} // namespace planish
