#include <algorithm>
#include <map>
#include <set>

#include "core/geometry/findings.h"

namespace planish {

namespace {

struct Hits {
    std::set<std::int64_t> layers;
    std::uint64_t count = 0, affectedRows = 0;
};

const std::vector<std::uint64_t> *countsAt(const Statistics &statistics, double tau)
{
    if (statistics.tau == tau)
        return &statistics.channel.overTauOrEqual;
    const ThresholdCounts *counts = statistics.at(tau);
    return counts ? &counts->overOrEqual : nullptr;
}

} // namespace

// diagonal.md 1.3 over both input sites together; a layer is hit when either of its inputs is.
std::vector<SystematicDimension> systematicDimensions(const std::vector<std::pair<Edge, Statistics>> &edges, double tau,
                                                      double layerFraction, double positionFraction)
{
    std::vector<std::pair<std::int64_t, const Statistics *>> inputs;
    for (const auto &[edge, statistics] : edges)
        if (edge.site == "attn_in" || edge.site == "mlp_in")
            inputs.emplace_back(edge.layer, &statistics);
    return systematicDimensions(inputs, tau, layerFraction, positionFraction);
}

std::vector<SystematicDimension> systematicDimensions(const std::vector<std::pair<std::int64_t, const Statistics *>> &inputs,
                                                      double tau, double layerFraction, double positionFraction)
{
    std::set<std::int64_t> layers;
    std::map<std::int64_t, Hits> hits; // by channel: nearly all channels have none
    std::uint64_t rows = 0;
    for (const auto &[layer, statistics] : inputs) {
        const auto *counts = countsAt(*statistics, tau);
        if (!counts)
            continue;
        layers.insert(layer);
        rows += statistics->tokens;
        for (std::size_t k = 0; k < counts->size(); ++k) {
            if ((*counts)[k] == 0)
                continue;
            Hits &hit = hits[static_cast<std::int64_t>(k)];
            hit.layers.insert(layer);
            hit.count += (*counts)[k];
            hit.affectedRows += statistics->tokens;
        }
    }
    std::vector<SystematicDimension> found;
    for (const auto &[channel, hit] : hits) {
        SystematicDimension dimension;
        dimension.channel = channel;
        dimension.layers.assign(hit.layers.begin(), hit.layers.end());
        dimension.layerFraction = static_cast<double>(hit.layers.size()) / static_cast<double>(layers.size());
        dimension.positionFractionAll = static_cast<double>(hit.count) / static_cast<double>(rows);
        dimension.positionFractionAffected = static_cast<double>(hit.count) / static_cast<double>(hit.affectedRows);
        if (dimension.layerFraction >= layerFraction && dimension.positionFractionAll >= positionFraction)
            found.push_back(std::move(dimension));
    }
    return found;
}

} // namespace planish
