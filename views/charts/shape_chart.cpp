#include "views/charts/shape_chart.h"

#include <algorithm>
#include <cmath>

namespace planish {

ShapeChart::ShapeChart(QWidget *parent) : ChartView(QStringLiteral("Values behind two candidates"), parent)
{
    setEmptyText(QStringLiteral("Compare on this edge, then choose two candidates."));
    setAccessibleDescription(
        QStringLiteral("Share of values by magnitude behind two candidates, and the difference of the two."));
}

void ShapeChart::setShapes(std::shared_ptr<const ValueShapes> shapes, const QString &first, const QString &second)
{
    clearAll();
    m_shapes = std::move(shapes);
    m_first = first;
    m_second = second;
    if (!m_shapes || m_shapes->shares.size() != 2) {
        m_shapes.reset();
        viewport()->update();
        return;
    }
    QList<QPointF> a, b, difference;
    double high = 0, low = 0;
    for (std::size_t i = 0; i + 1 < m_shapes->edges.size(); ++i) {
        const double x = std::sqrt(m_shapes->edges[i] * m_shapes->edges[i + 1]);
        const double one = 100 * m_shapes->shares[0][i], other = 100 * m_shapes->shares[1][i];
        a.push_back({x, one});
        b.push_back({x, other});
        difference.push_back({x, other - one});
        high = std::max({high, one, other});
        low = std::min(low, other - one);
    }
    addLine(QStringLiteral("A %1, max %2").arg(first, shortNumber(m_shapes->maxima[0])), a, SeriesTone::Before, 1.8);
    addLine(QStringLiteral("B %1, max %2").arg(second, shortNumber(m_shapes->maxima[1])), b, SeriesTone::Main, 1.8);
    addLine(QStringLiteral("B - A"), difference, SeriesTone::Second, 1.0);
    finish({QStringLiteral("|x'|, %1 held-out rows; below the axis: A %2, B %3")
                .arg(m_shapes->rows)
                .arg(percentText(m_shapes->below[0]), percentText(m_shapes->below[1])),
            AxisScale::Logarithmic, m_shapes->edges.front(), m_shapes->edges.back()},
           {QStringLiteral("% of values"), AxisScale::Linear, low * 1.05, high * 1.05});
}

std::size_t ShapeChart::binAt(double x) const
{
    const auto at = std::upper_bound(m_shapes->edges.begin(), m_shapes->edges.end(), x) - m_shapes->edges.begin();
    return static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(at - 1, 0, static_cast<std::ptrdiff_t>(m_shapes->edges.size()) - 2));
}

QString ShapeChart::hoverText(const QPointF &value) const
{
    if (!m_shapes) {
        return {};
    }
    const std::size_t i = binAt(value.x());
    return QStringLiteral("|x'| %1 to %2: A %3, B %4")
        .arg(shortNumber(m_shapes->edges[i]), shortNumber(m_shapes->edges[i + 1]), percentText(m_shapes->shares[0][i]),
             percentText(m_shapes->shares[1][i]));
}

PlotTable ShapeChart::table() const
{
    PlotTable table{{"low", "high", "A " + m_first, "B " + m_second, "difference"}, {}};
    for (std::size_t i = 0; m_shapes && i + 1 < m_shapes->edges.size(); ++i) {
        const double a = m_shapes->shares[0][i], b = m_shapes->shares[1][i];
        table.rows.push_back({fullNumber(m_shapes->edges[i]), fullNumber(m_shapes->edges[i + 1]), fullNumber(a), fullNumber(b),
                              fullNumber(b - a)});
    }
    return table;
}

} // namespace planish
