// Bootstrap draws of the units of rows, for the stability of a finding: the share of draws in which it recurs. evaluation.md 3.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "core/measure/statistics.h"

namespace planish {

/// 20 draws with replacement from `statistics.units`, stream `bootstrap` of the edge. Empty with fewer than two units.
/// Borrows `statistics`. One thread.
class BootstrapDraws {
public:
    BootstrapDraws(const Statistics &statistics, std::uint64_t seed, std::string_view edge);

    std::size_t size() const { return m_weight.size(); }
    std::uint32_t weight(std::size_t draw, std::size_t unit) const { return m_weight[draw][unit]; }
    std::uint64_t rows(std::size_t draw) const;
    /// Lower median of |x| of a draw: exact for 16-bit inputs, to 1/256 for f32 (1/32 for f64) otherwise.
    double median(std::size_t draw) const;
    /// Sum over units of weight x value(unit).
    double sum(std::size_t draw, const std::function<double(const UnitSums &)> &value) const;
    /// Whether the unit of a counted row (by its index) is in the draw.
    bool hasRow(std::size_t draw, std::size_t rowIndex) const;
    /// Largest |x| of each channel in a draw, [K].
    std::vector<double> channelMaxAbs(std::size_t draw) const;
    std::vector<double> channelEnergy(std::size_t draw) const;

    /// Share of draws that satisfy the condition; nullopt without draws.
    std::optional<double> share(const std::function<bool(std::size_t draw)> &recurs) const;

private:
    const Statistics &m_statistics;
    std::vector<std::vector<std::uint32_t>> m_weight; ///< [draw][unit]
    mutable std::vector<std::optional<double>> m_median;
};

/// Largest |x| of channel k in one unit; 0 without a finite element.
double unitMaxAbs(const UnitSums &unit, std::size_t k);

} // namespace planish
