// Which unit of the split each counted row of an edge belongs to, for bootstrap draws and for what differs between parts.
#pragma once

#include <cstdint>
#include <vector>

#include "core/measure/statistics.h"

namespace planish {

/// At most kMostUnits; beyond that, neighbouring units of the same side (calibration or not) share one.
struct AnalysisUnits {
    std::vector<std::int32_t> rowUnit;     ///< per counted row; empty when the dump has no split
    std::vector<std::uint8_t> calibration; ///< per unit
    std::size_t size() const { return calibration.size(); }
};

inline constexpr std::size_t kMostUnits = 64; ///< each costs 128 K bytes and a histogram of 512 KiB while statistics run

/// `countedFileRows` ascending. Rows outside every unit go to one of their own.
AnalysisUnits analysisUnits(const Split &split, const DumpEdge &edge, const std::vector<std::int64_t> &countedFileRows);

/// Puts the units into a request, and after the run marks the calibration units in the result.
void askForUnits(const AnalysisUnits &units, StatisticsRequest &request);
void markCalibration(const AnalysisUnits &units, Statistics &statistics);

} // namespace planish
