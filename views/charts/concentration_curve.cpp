#include "views/charts/concentration_curve.h"

#include <algorithm>
#include <cmath>

#include "views/charts/decimation.h"

namespace planish {

ConcentrationCurve::ConcentrationCurve(QWidget *parent) : ChartView(QStringLiteral("Energy concentration"), parent)
{
    setAccessibleDescription(QStringLiteral("Share of the energy in the r largest channels."));
}

void ConcentrationCurve::setCurve(std::vector<double> shares, std::size_t onePercent)
{
    clearAll();
    m_shares = std::move(shares);
    if (m_shares.empty()) {
        setMarker(std::nullopt);
        setEmptyText(QStringLiteral("No energy: every value is zero."));
        return;
    }
    QList<QPointF> points = pointsOf(m_shares);
    for (QPointF &p : points) {
        p.rx() += 1.0;
    }
    addLine(QStringLiteral("share of energy"), envelope(points), SeriesTone::Main, 1.6);
    const QPointF marked(static_cast<double>(onePercent), m_shares[std::min(onePercent, m_shares.size()) - 1]);
    addMarks(QStringLiteral("top 1 %: %1").arg(percentText(marked.y())), {marked}, SeriesTone::Second, 9.0);
    finish(
        {QStringLiteral("r largest channels"), AxisScale::Logarithmic, 1.0, std::max(2.0, static_cast<double>(m_shares.size()))},
        {QStringLiteral("share of energy"), AxisScale::Linear, 0.0, 1.0});
}

QString ConcentrationCurve::hoverText(const QPointF &value) const
{
    if (m_shares.empty()) {
        return {};
    }
    const auto r = static_cast<std::size_t>(std::clamp(std::round(value.x()), 1.0, static_cast<double>(m_shares.size())));
    return QStringLiteral("%1 of the energy in the %2 largest channels").arg(percentText(m_shares[r - 1])).arg(r);
}

PlotTable ConcentrationCurve::table() const
{
    PlotTable table{{"r", "share"}, {}};
    for (std::size_t r = 0; r < m_shares.size(); ++r) {
        table.rows.push_back({QString::number(r + 1), fullNumber(m_shares[r])});
    }
    return table;
}

} // namespace planish
