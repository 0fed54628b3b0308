#include "kernels/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/moments.h"

namespace planish {

static void addElement(BlockStatistics &into, std::size_t channel, double x, std::size_t row)
{
    into.minimum[channel] = std::min(into.minimum[channel], x);
    into.maximum[channel] = std::max(into.maximum[channel], x);
    const double a = std::fabs(x);
    into.maxAbs[channel] = std::max(into.maxAbs[channel], a);
    into.sum[channel] += x;
    into.sumAbs[channel] += a;
    into.energy[channel] += x * x;
    into.overTau[channel] += a > into.tau ? 1 : 0;
    into.overTauOrEqual[channel] += a >= into.tau ? 1 : 0;
    const CentralMoments before{static_cast<double>(into.finite[channel]), into.mean[channel], into.m2[channel], into.m3[channel],
                                into.m4[channel]};
    const CentralMoments after = merged(before, {1.0, x, 0.0, 0.0, 0.0});
    ++into.finite[channel];
    into.mean[channel] = after.mean;
    into.m2[channel] = after.m2;
    into.m3[channel] = after.m3;
    into.m4[channel] = after.m4;
    into.rowMaxAbs[row] = std::max(into.rowMaxAbs[row], a);
    into.rowEnergy[row] += x * x;
    into.rowOverTau[row] += a > into.tau ? 1 : 0;
}

void accumulateRowsReference(StoredKind kind, const std::byte *data, std::size_t rows, std::size_t strideBytes,
                             BlockStatistics &into)
{
    const bool isShort = byteSize(kind) == 2;
    if (isShort && into.histogram.empty()) {
        into.histogram.assign(65536, 0);
    }
    std::vector<double> values(into.channels);
    for (std::size_t r = 0; r < rows; ++r) {
        const std::byte *row = data + r * strideBytes;
        widen(kind, row, into.channels, values.data());
        into.rowMaxAbs.push_back(0.0);
        into.rowEnergy.push_back(0.0);
        into.rowOverTau.push_back(0);
        for (std::size_t k = 0; k < into.channels; ++k) {
            if (!std::isfinite(values[k])) {
                ++into.nonFinite[k];
                if (into.firstNonFiniteRow < 0) {
                    into.firstNonFiniteRow = static_cast<std::int64_t>(into.rows);
                    into.firstNonFiniteChannel = static_cast<std::int64_t>(k);
                }
                continue;
            }
            addElement(into, k, values[k], into.rows);
            if (isShort) {
                std::uint16_t bits;
                std::memcpy(&bits, row + 2 * k, sizeof bits);
                ++into.histogram[bits & 0x7FFF];
            }
        }
        ++into.rows;
    }
}

} // namespace planish
