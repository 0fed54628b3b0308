#include "kernels/statistics.h"

#include <cstring>
#include <limits>

#include "kernels/float_codes.h"

namespace planish {

std::size_t byteSize(StoredKind kind)
{
    switch (kind) {
    case StoredKind::F16:
    case StoredKind::Bf16:
        return 2;
    case StoredKind::F32:
        return 4;
    case StoredKind::F64:
        return 8;
    }
    return 8;
}

BlockStatistics::BlockStatistics(std::size_t channelCount, double threshold)
    : tau(threshold), channels(channelCount), minimum(channelCount, std::numeric_limits<double>::infinity()),
      maximum(channelCount, -std::numeric_limits<double>::infinity()), maxAbs(channelCount), sum(channelCount),
      sumAbs(channelCount), energy(channelCount), mean(channelCount), m2(channelCount), m3(channelCount), m4(channelCount),
      finite(channelCount), nonFinite(channelCount), overTau(channelCount), overTauOrEqual(channelCount)
{
}

template <class Stored, class Convert> static void widenAs(const std::byte *data, std::size_t count, double *out, Convert convert)
{
    for (std::size_t i = 0; i < count; ++i) {
        Stored stored;
        std::memcpy(&stored, data + i * sizeof stored, sizeof stored);
        out[i] = static_cast<double>(convert(stored));
    }
}

void widen(StoredKind kind, const std::byte *data, std::size_t count, double *out)
{
    switch (kind) {
    case StoredKind::F16:
        widenAs<std::uint16_t>(data, count, out, [](std::uint16_t v) { return halfToFloat(v); });
        return;
    case StoredKind::Bf16:
        widenAs<std::uint16_t>(data, count, out, [](std::uint16_t v) { return bfloat16ToFloat(v); });
        return;
    case StoredKind::F32:
        widenAs<float>(data, count, out, [](float v) { return v; });
        return;
    case StoredKind::F64:
        widenAs<double>(data, count, out, [](double v) { return v; });
        return;
    }
}

} // namespace planish
