// Single numbers of an analysed edge that the tree, the map and the inspector show; definitions: the statistics page of
// `analyze`.
#pragma once

#include <optional>
#include <string_view>

#include "core/run/engine.h"

namespace planish {

/// Measures of the depth map. All come from `analyze`; none needs an evaluation.
enum class EdgeMeasure { MaxToMedian, TopChannelShare, MeanIncoherence, MaxAbs, Kurtosis };

struct EdgeMeasureRow {
    EdgeMeasure measure;
    std::string_view key, label;
    bool logarithmic;
};
/// All measures in the order of the combo box.
std::span<const EdgeMeasureRow> edgeMeasures();

/// max |x| / lower median |x|; nullopt when the median is 0.
std::optional<double> maxToMedian(const Statistics &statistics);
/// Mean of the token incoherences over rows that are not zero.
std::optional<double> meanIncoherence(const Statistics &statistics);
std::optional<double> measureOf(const EdgeAnalysis &edge, EdgeMeasure measure);
/// log10(max_to_median) / 3 within 0..1: full at 1000. 0 where the ratio is undefined.
double severityOf(const EdgeAnalysis &edge);
/// Badges of the tree, from the findings: persistent, massive, super-weight, asymmetric, dead, non-finite …
std::vector<std::string> badgesOf(const EdgeAnalysis &edge);

} // namespace planish
