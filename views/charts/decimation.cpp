#include "views/charts/decimation.h"

#include <algorithm>
#include <cmath>

namespace planish {

QList<QPointF> envelope(const QList<QPointF> &points, std::size_t budget)
{
    const auto count = static_cast<std::size_t>(points.size());
    if (count <= budget || budget < 2) {
        return points;
    }
    const std::size_t buckets = budget / 2;
    QList<QPointF> kept;
    kept.reserve(static_cast<qsizetype>(budget));
    for (std::size_t b = 0; b < buckets; ++b) {
        const auto begin = points.begin() + static_cast<qsizetype>(b * count / buckets);
        const auto end = points.begin() + static_cast<qsizetype>((b + 1) * count / buckets);
        const auto [low, high] =
            std::minmax_element(begin, end, [](const QPointF &a, const QPointF &c) { return a.y() < c.y(); });
        const auto first = std::min(low, high), second = std::max(low, high);
        kept.push_back(*first);
        if (second != first) {
            kept.push_back(*second);
        }
    }
    return kept;
}

QList<QPointF> positiveOnly(const QList<QPointF> &points)
{
    QList<QPointF> kept;
    std::copy_if(points.begin(), points.end(), std::back_inserter(kept),
                 [](const QPointF &p) { return std::isfinite(p.y()) && p.y() > 0.0 && std::isfinite(p.x()); });
    return kept;
}

QList<QPointF> finiteOnly(const QList<QPointF> &points)
{
    QList<QPointF> kept;
    std::copy_if(points.begin(), points.end(), std::back_inserter(kept),
                 [](const QPointF &p) { return std::isfinite(p.y()) && std::isfinite(p.x()); });
    return kept;
}

QList<QPointF> pointsOf(const std::vector<double> &values)
{
    QList<QPointF> points;
    points.reserve(static_cast<qsizetype>(values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
        points.push_back({static_cast<double>(i), values[i]});
    }
    return points;
}

} // namespace planish
