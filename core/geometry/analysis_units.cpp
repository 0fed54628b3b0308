#include "core/geometry/analysis_units.h"

#include <algorithm>
#include <unordered_map>

namespace planish {

namespace {

std::vector<std::uint8_t> calibrationFlags(const Split &split)
{
    std::vector<std::uint8_t> flags(split.units.size(), 0);
    for (std::int32_t unit : split.calibration)
        flags[static_cast<std::size_t>(unit)] = 1;
    return flags;
}

// Group of every unit: itself, or its place among the units of its side scaled down to the room that side has.
std::vector<std::int32_t> groupsOf(const std::vector<std::uint8_t> &flags)
{
    std::vector<std::int32_t> group(flags.size());
    if (flags.size() <= kMostUnits) {
        for (std::size_t u = 0; u < flags.size(); ++u)
            group[u] = static_cast<std::int32_t>(u);
        return group;
    }
    const auto inside = static_cast<std::size_t>(std::count(flags.begin(), flags.end(), 1));
    const std::size_t total[2] = {flags.size() - inside, inside};
    std::size_t room[2], seen[2] = {0, 0};
    room[1] = std::clamp<std::size_t>(kMostUnits * inside / flags.size(), inside > 0, kMostUnits - (total[0] > 0));
    room[0] = kMostUnits - room[1];
    for (std::size_t u = 0; u < flags.size(); ++u) {
        const int side = flags[u];
        const std::size_t at = seen[side]++ * std::min(room[side], total[side]) / total[side];
        group[u] = static_cast<std::int32_t>(side == 1 ? at : room[1] + at);
    }
    return group;
}

} // namespace

AnalysisUnits analysisUnits(const Split &split, const DumpEdge &edge, const std::vector<std::int64_t> &countedFileRows)
{
    AnalysisUnits units;
    if (split.units.empty() || split.unit == SplitUnit::Explicit)
        return units;
    const auto flags = calibrationFlags(split);
    const auto group = groupsOf(flags);
    std::unordered_map<std::int64_t, std::int32_t> unitOfToken;
    for (std::size_t u = 0; u < split.units.size(); ++u)
        for (std::int64_t token : split.units[u].tokens)
            unitOfToken.emplace(token, static_cast<std::int32_t>(u));
    std::unordered_map<std::int32_t, std::int32_t> compact; // only groups that have rows on this edge count as units
    for (std::int64_t row : countedFileRows) {
        const auto found = unitOfToken.find(tokenOfRow(edge, row));
        const std::int32_t key = found == unitOfToken.end() ? -1 : group[static_cast<std::size_t>(found->second)];
        const auto [at, fresh] = compact.emplace(key, static_cast<std::int32_t>(compact.size()));
        if (fresh)
            units.calibration.push_back(key >= 0 ? flags[static_cast<std::size_t>(found->second)] : 0);
        units.rowUnit.push_back(at->second);
    }
    return units;
}

void askForUnits(const AnalysisUnits &units, StatisticsRequest &request)
{
    request.rowUnit = units.rowUnit;
    request.unitCount = units.size();
}

void markCalibration(const AnalysisUnits &units, Statistics &statistics)
{
    for (std::size_t u = 0; u < statistics.units.size() && u < units.size(); ++u)
        statistics.units[u].calibration = units.calibration[u] != 0;
}

} // namespace planish
