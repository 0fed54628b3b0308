// Charts of a report as inline SVG text: no script, colours by class (the page's style sheet), every mark with its numbers on
// hover.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace planish {

/// One row of a before/after chart on a logarithmic axis.
struct BeforeAfter {
    std::string label;
    std::optional<double> before, after, low, high, joint;
};
/// Errors of edges before and after, with the 95 % spread of the after value and the joint value as a tick.
std::string beforeAfterChart(const std::vector<BeforeAfter> &rows, const std::string &axis);

/// One candidate on one edge.
struct CandidateMark {
    std::string name, note; ///< note: reason of a refusal or a tie, shown on hover
    std::optional<double> value, low, high, cost;
    int tie = -1;
    bool chosen = false, usable = true;
};
/// Candidates in the order given, error on a logarithmic axis with spread; tie sets are banded.
std::string candidateChart(const std::vector<CandidateMark> &candidates, const std::string &axis);
/// Error against online cost; the front is drawn. Empty when fewer than two candidates carry a cost.
std::string paretoChart(const std::vector<CandidateMark> &candidates);

/// Largest value of each channel before and after, logarithmic; decimated to the width by maxima, so no spike is lost.
std::string profileChart(const std::vector<double> &before, const std::vector<double> &after);
/// Share of the energy in the r largest channels, r logarithmic.
std::string concentrationChart(const std::vector<double> &before, const std::vector<double> &after);

struct HeatCell {
    std::size_t column = 0, row = 0;
    std::optional<double> value;
    std::string hover;
};
/// Depth x site map: viridis over log10 of the value, legend included. Columns and rows are labels.
std::string heatMap(const std::vector<std::string> &columns, const std::vector<std::string> &rows,
                    const std::vector<HeatCell> &cells, const std::string &measure);

/// `columns` maxima of equal runs of `values` (all of them when they fit).
std::vector<double> decimatedMaxima(const std::vector<double> &values, std::size_t columns);
/// "#440154" to "#fde725"; t is clamped to [0, 1].
std::string viridis(double t);

} // namespace planish
