#include "core/run/analysis_fields.h"

#include <cmath>
#include <numeric>

namespace planish {

namespace {

using Value = std::optional<double>;

Value whenFinite(const Statistics &s, std::size_t k, double value)
{
    return s.channel.finite[k] > 0 ? Value(value) : std::nullopt;
}

Value ratio(double numerator, double denominator)
{
    return denominator != 0.0 ? Value(numerator / denominator) : std::nullopt;
}

Value asymmetry(const Statistics &s, std::size_t k)
{
    const double u = s.channel.maximum[k], l = s.channel.minimum[k];
    return u > l ? ratio(u + l, u - l) : std::nullopt;
}

constexpr ChannelField kChannelFields[] = {
    {"max_abs", [](const Statistics &s, std::size_t k) { return whenFinite(s, k, s.channel.maxAbs[k]); }},
    {"min", [](const Statistics &s, std::size_t k) { return whenFinite(s, k, s.channel.minimum[k]); }},
    {"max", [](const Statistics &s, std::size_t k) { return whenFinite(s, k, s.channel.maximum[k]); }},
    {"mean",
     [](const Statistics &s, std::size_t k) { return ratio(s.channel.sum[k], static_cast<double>(s.channel.finite[k])); }},
    {"energy", [](const Statistics &s, std::size_t k) { return Value(s.channel.energy[k]); }},
    {"occupancy", [](const Statistics &s,
                     std::size_t k) { return ratio(static_cast<double>(s.channel.overTau[k]), static_cast<double>(s.tokens)); }},
    {"asymmetry", asymmetry},
    {"asymmetry_mean", [](const Statistics &s, std::size_t k) { return ratio(s.channel.sum[k], s.channel.sumAbs[k]); }},
    {"kurtosis", [](const Statistics &s, std::size_t k) { return s.channel.moments[k].kurtosis(); }},
};

constexpr TokenField kTokenFields[] = {
    {"max_abs", [](const Statistics &s, std::size_t r) { return Value(s.token.maxAbs[r]); }},
    {"energy", [](const Statistics &s, std::size_t r) { return Value(s.token.energy[r]); }},
    {"occupancy", [](const Statistics &s, std::size_t r) { return ratio(s.token.overTau[r], static_cast<double>(s.channels)); }},
    {"incoherence",
     [](const Statistics &s, std::size_t r) {
         return std::isnan(s.token.incoherence[r]) ? std::nullopt : Value(s.token.incoherence[r]);
     }},
};

} // namespace

std::span<const ChannelField> channelFields()
{
    return kChannelFields;
}

std::span<const TokenField> tokenFields()
{
    return kTokenFields;
}

ChannelCounts channelCounts(const Statistics &s)
{
    ChannelCounts counts;
    for (std::size_t k = 0; k < s.channels; ++k) {
        if (s.channel.finite[k] == 0)
            continue;
        counts.dead += s.channel.maxAbs[k] == 0.0;
        counts.constant += s.channel.maximum[k] == s.channel.minimum[k];
    }
    return counts;
}

double densityOf(const Statistics &s, const std::vector<std::uint64_t> &counts)
{
    const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
    const double elements = static_cast<double>(s.tokens) * static_cast<double>(s.channels);
    return elements > 0.0 ? total / elements : 0.0;
}

} // namespace planish
