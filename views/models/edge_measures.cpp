#include "views/models/edge_measures.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace planish {

namespace {
constexpr std::array kMeasures{
    EdgeMeasureRow{EdgeMeasure::MaxToMedian, "max_to_median", "max / median |x|", true},
    EdgeMeasureRow{EdgeMeasure::TopChannelShare, "c1pct", "energy in the top 1 % of channels", false},
    EdgeMeasureRow{EdgeMeasure::MeanIncoherence, "mean_incoherence", "mean token incoherence", false},
    EdgeMeasureRow{EdgeMeasure::MaxAbs, "max_abs", "max |x|", true},
    EdgeMeasureRow{EdgeMeasure::Kurtosis, "tensor_kurtosis", "kurtosis", true},
};
constexpr double kSeverityDecades = 3.0; // the bar is full at a ratio of 1000

struct BadgeRow {
    std::string_view kind, badge;
};
constexpr std::array kBadges{
    BadgeRow{"persistent_channel", "persistent"},       BadgeRow{"massive_activation", "massive"},
    BadgeRow{"super_weight_candidate", "super-weight"}, BadgeRow{"rare_token", "rare token"},
    BadgeRow{"asymmetric_channel", "asymmetric"},       BadgeRow{"dead_channel", "dead"},
    BadgeRow{"constant_channel", "constant"},           BadgeRow{"nonfinite", "non-finite"},
};
} // namespace

std::span<const EdgeMeasureRow> edgeMeasures()
{
    return kMeasures;
}

std::optional<double> maxToMedian(const Statistics &statistics)
{
    if (statistics.medianAbs == 0.0) {
        return std::nullopt;
    }
    return statistics.maxAbs / statistics.medianAbs;
}

std::optional<double> meanIncoherence(const Statistics &statistics)
{
    double sum = 0.0;
    std::size_t count = 0;
    for (double value : statistics.token.incoherence) {
        if (std::isfinite(value)) {
            sum += value;
            ++count;
        }
    }
    return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

std::optional<double> measureOf(const EdgeAnalysis &edge, EdgeMeasure measure)
{
    if (!edge.statistics) {
        return std::nullopt;
    }
    switch (measure) {
    case EdgeMeasure::MaxToMedian:
        return maxToMedian(*edge.statistics);
    case EdgeMeasure::TopChannelShare:
        return edge.concentration.c1pct;
    case EdgeMeasure::MeanIncoherence:
        return meanIncoherence(*edge.statistics);
    case EdgeMeasure::MaxAbs:
        return edge.statistics->maxAbs;
    case EdgeMeasure::Kurtosis:
        return edge.statistics->tensor.kurtosis();
    }
    return std::nullopt;
}

double severityOf(const EdgeAnalysis &edge)
{
    const auto ratio = measureOf(edge, EdgeMeasure::MaxToMedian);
    return ratio && *ratio > 0.0 ? std::clamp(std::log10(*ratio) / kSeverityDecades, 0.0, 1.0) : 0.0;
}

std::vector<std::string> badgesOf(const EdgeAnalysis &edge)
{
    std::vector<std::string> badges;
    for (const BadgeRow &row : kBadges) {
        if (std::any_of(edge.findings.begin(), edge.findings.end(), [&](const Finding &f) { return f.kind == row.kind; })) {
            badges.emplace_back(row.badge);
        }
    }
    return badges;
}

} // namespace planish
