// Per-channel and per-token figures of an analysis by name, once for JSON and CSV. Definitions: evaluation.md 2.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/measure/statistics.h"

namespace planish {

/// `value` gives nullopt where the figure is undefined.
struct ChannelField {
    const char *name;
    std::optional<double> (*value)(const Statistics &statistics, std::size_t channel);
};
struct TokenField {
    const char *name;
    std::optional<double> (*value)(const Statistics &statistics, std::size_t row);
};
std::span<const ChannelField> channelFields();
std::span<const TokenField> tokenFields();

struct ChannelCounts {
    std::uint64_t dead = 0, constant = 0;
};
/// Dead: all finite elements zero. Constant: maximum equals minimum (dead channels included, as both definitions say).
ChannelCounts channelCounts(const Statistics &statistics);

/// Sum of counts over tokens x K.
double densityOf(const Statistics &statistics, const std::vector<std::uint64_t> &counts);

} // namespace planish
