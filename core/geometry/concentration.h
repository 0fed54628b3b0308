// Where the energy sits: shares of the largest channels, the curve C_r, histograms for pictures. evaluation.md 2.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/measure/statistics.h"

namespace planish {

struct Concentration {
    std::optional<double> c1, c8, c1pct;
    std::size_t r1pct = 1;
};
Concentration concentrationOf(const Statistics &statistics);

/// C_r for r = 1..K (energy desc, index asc); empty when the total energy is 0.
std::vector<double> concentrationCurve(const Statistics &statistics);
/// Channel indices by energy desc, index asc.
std::vector<std::size_t> channelsByEnergy(const Statistics &statistics);

/// Max-preserving image of |X| (or signed extreme): [rows', cols'] cells, each the largest magnitude of what it covers.
struct MaxImage {
    std::size_t rows = 0, cols = 0;
    std::uint64_t rowBegin = 0, rowEnd = 0, channelBegin = 0, channelEnd = 0;
    std::vector<float> value; ///< signed value of largest magnitude
};

} // namespace planish
