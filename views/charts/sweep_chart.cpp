#include "views/charts/sweep_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "views/charts/decimation.h"

namespace planish {

namespace {
constexpr double kLogFrom = 20.0; // a range above this factor reads better on a log axis

struct Curve {
    QList<QPointF> error, low, high;
};

Curve curveOf(const Sweep &sweep)
{
    Curve curve;
    for (std::size_t i = 0; i < sweep.values.size() && i < sweep.evaluations.size(); ++i) {
        const Evaluation &e = sweep.evaluations[i];
        if (!e.output || !std::isfinite(e.output->relativeFrobenius)) {
            continue;
        }
        const double x = sweep.values[i], y = e.output->relativeFrobenius;
        curve.error.push_back({x, y});
        if (e.uncertainty) {
            curve.low.push_back({x, e.uncertainty->low});
            curve.high.push_back({x, e.uncertainty->high});
        }
    }
    return curve;
}
} // namespace

SweepChart::SweepChart(QWidget *parent) : ChartView(QStringLiteral("Sweep"), parent)
{
    setEmptyText(QStringLiteral("Run a sweep to see the error against a parameter."));
    setAccessibleDescription(QStringLiteral("Output error against one parameter; click a point to adopt its value."));
    connect(this, &ChartView::pickedAt, this, [this](double x) {
        if (m_sweep && !m_sweep->values.empty()) {
            emit valuePicked(m_sweep->values[nearest(x)]);
        }
    });
}

void SweepChart::setSweep(std::shared_ptr<const Sweep> sweep)
{
    clearAll();
    m_sweep = std::move(sweep);
    if (!m_sweep) {
        setMarker(std::nullopt);
        viewport()->update();
        return;
    }
    Curve curve = curveOf(*m_sweep);
    if (curve.error.isEmpty()) {
        setEmptyText(QStringLiteral("No value of this sweep could be evaluated."));
        return;
    }
    const auto [low, high] = std::minmax_element(curve.error.begin(), curve.error.end(),
                                                 [](const QPointF &a, const QPointF &b) { return a.y() < b.y(); });
    const AxisScale scale = low->y() > 0 && high->y() / low->y() > kLogFrom ? AxisScale::Logarithmic : AxisScale::Linear;
    double bottom = low->y(), top = high->y();
    if (curve.low.size() > 1) {
        for (QPointF &p : curve.low) {
            p.ry() = scale == AxisScale::Logarithmic ? std::max(p.y(), low->y() * 0.1) : std::max(p.y(), 0.0);
            bottom = std::min(bottom, p.y());
        }
        for (const QPointF &p : curve.high) {
            top = std::max(top, std::min(p.y(), 4.0 * high->y())); // a huge spread must not flatten the curve
        }
        addBand(QStringLiteral("95 % spread"), curve.low, curve.high, SeriesTone::Main);
    }
    addLine(QStringLiteral("output error"), curve.error, SeriesTone::Main, 1.8);
    if (m_sweep->best < m_sweep->evaluations.size() && m_sweep->evaluations[m_sweep->best].output) {
        const QPointF best(m_sweep->values[m_sweep->best], m_sweep->evaluations[m_sweep->best].output->relativeFrobenius);
        addMarks(QStringLiteral("minimum %1 at %2").arg(shortNumber(best.y()), shortNumber(best.x())), {best}, SeriesTone::Second,
                 10.0);
    }
    finish({toQString(m_sweep->parameter), AxisScale::Linear, m_sweep->values.front(),
            std::max(m_sweep->values.back(), m_sweep->values.front() + 1e-9)},
           fitted(QStringLiteral("output error"), scale, scale == AxisScale::Linear ? std::min(0.0, bottom) : bottom, top));
}

void SweepChart::setCurrentValue(std::optional<double> value)
{
    setMarker(value);
}

std::size_t SweepChart::nearest(double x) const
{
    const auto at = std::min_element(m_sweep->values.begin(), m_sweep->values.end(),
                                     [x](double a, double b) { return std::abs(a - x) < std::abs(b - x); });
    return static_cast<std::size_t>(at - m_sweep->values.begin());
}

QString SweepChart::hoverText(const QPointF &value) const
{
    if (!m_sweep || m_sweep->values.empty()) {
        return {};
    }
    const std::size_t i = nearest(value.x());
    const Evaluation &e = m_sweep->evaluations[i];
    return QStringLiteral("%1 = %2: %3\nclick to adopt")
        .arg(toQString(m_sweep->parameter), shortNumber(m_sweep->values[i]),
             e.output ? shortNumber(e.output->relativeFrobenius) : toQString(e.reason));
}

PlotTable SweepChart::table() const
{
    PlotTable table{{m_sweep ? toQString(m_sweep->parameter) : QStringLiteral("value"), "relative_frobenius", "low", "high",
                     "rows_rms", "status"},
                    {}};
    for (std::size_t i = 0; m_sweep && i < m_sweep->evaluations.size(); ++i) {
        const Evaluation &e = m_sweep->evaluations[i];
        table.rows.push_back({fullNumber(m_sweep->values[i]), e.output ? fullNumber(e.output->relativeFrobenius) : QString(),
                              e.uncertainty ? fullNumber(e.uncertainty->low) : QString(),
                              e.uncertainty ? fullNumber(e.uncertainty->high) : QString(),
                              e.output ? fullNumber(e.output->rows.rms) : QString(),
                              e.status == EvaluationStatus::Ok ? QStringLiteral("ok") : toQString(e.reason)});
    }
    return table;
}

} // namespace planish
