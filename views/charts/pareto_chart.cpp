#include "views/charts/pareto_chart.h"

#include <algorithm>
#include <cmath>

namespace planish {

namespace {
/// 1, 2 or 5 times a power of ten: about five ticks.
double niceInterval(double span)
{
    const double power = std::pow(10.0, std::floor(std::log10(span / 5)));
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (span / (factor * power) <= 6) {
            return factor * power;
        }
    }
    return 10 * power;
}

const char *titleOf(ComparisonMeasure measure)
{
    return measure == ComparisonMeasure::WeightBits ? "bits per weight" : "online flops per token";
}
} // namespace

ParetoChart::ParetoChart(QWidget *parent) : ChartView(QStringLiteral("Error against cost"), parent)
{
    setEmptyText(QStringLiteral("Compare candidates to see what each unit of error costs."));
    setAccessibleDescription(
        QStringLiteral("Output error of every candidate against its online cost or bits; the line is the Pareto front."));
    connect(this, &ChartView::pickedAt, this, [this](double x) {
        const auto at = std::min_element(m_points.begin(), m_points.end(), [x](const Point &a, const Point &b) {
            return std::abs(a.cost - x) < std::abs(b.cost - x);
        });
        if (at != m_points.end()) {
            emit candidatePicked(at->name);
        }
    });
}

void ParetoChart::setEdge(std::shared_ptr<const Comparison> comparison, const EdgeId &edge, ComparisonMeasure cost)
{
    m_points.clear();
    m_cost = cost;
    for (const EdgeComparison &each : comparison->edges) {
        if (each.edge != edge) {
            continue;
        }
        for (const RankEntry &entry : each.ranking) {
            const Evaluation &e = each.evaluations[entry.index];
            const auto value = measureOf(e, cost);
            if (value && e.output->relativeFrobenius > 0) {
                m_points.push_back({toQString(e.candidate), *value, e.output->relativeFrobenius, entry.tie, false});
            }
        }
    }
    for (Point &point : m_points) {
        point.front = std::none_of(m_points.begin(), m_points.end(), [&](const Point &other) {
            return other.cost <= point.cost && other.error <= point.error &&
                   (other.cost < point.cost || other.error < point.error);
        });
    }
    draw();
}

void ParetoChart::setSelected(const QString &candidate)
{
    if (m_selected != candidate) {
        m_selected = candidate;
        draw();
    }
}

void ParetoChart::draw()
{
    clearAll();
    if (m_points.empty()) {
        viewport()->update();
        return;
    }
    QList<QPointF> front, on, off, selected;
    double lowCost = INFINITY, highCost = 0, lowError = INFINITY, highError = 0;
    for (const Point &point : m_points) {
        const QPointF at(point.cost, point.error);
        (point.name == m_selected ? selected : point.front ? on : off).push_back(at);
        if (point.front) {
            front.push_back(at);
        }
        lowCost = std::min(lowCost, point.cost);
        highCost = std::max(highCost, point.cost);
        lowError = std::min(lowError, point.error);
        highError = std::max(highError, point.error);
    }
    std::sort(front.begin(), front.end(), [](const QPointF &a, const QPointF &b) { return a.x() < b.x(); });
    if (front.size() > 1) {
        addLine(QStringLiteral("Pareto front"), front, SeriesTone::Second, 1.2);
    }
    for (const auto &[name, points, tone, size] : {std::tuple{"dominated", &off, SeriesTone::Before, 7.0},
                                                   {"not dominated", &on, SeriesTone::Main, 9.0},
                                                   {"selected", &selected, SeriesTone::Limit, 11.0}}) {
        if (!points->isEmpty()) {
            addMarks(QString::fromLatin1(name), *points, tone, size);
        }
    }
    const double span = std::max(highCost - lowCost, m_cost == ComparisonMeasure::WeightBits ? 0.1 : 1.0);
    finish({QString::fromLatin1(titleOf(m_cost)), AxisScale::Linear, lowCost - 0.05 * span, highCost + 0.05 * span},
           fitted(QStringLiteral("output error"), highError / lowError > 20 ? AxisScale::Logarithmic : AxisScale::Linear,
                  highError / lowError > 20 ? lowError : 0.0, highError));
    setTicks(0.0, niceInterval(span));
}

const ParetoChart::Point *ParetoChart::nearest(const QPointF &value) const
{
    double highCost = 1e-12, highError = 1e-300;
    for (const Point &point : m_points) {
        highCost = std::max(highCost, point.cost);
        highError = std::max(highError, point.error);
    }
    const Point *best = nullptr;
    double smallest = INFINITY;
    for (const Point &point : m_points) {
        const double distance = std::hypot((point.cost - value.x()) / highCost, (point.error - value.y()) / highError);
        if (distance < smallest) {
            smallest = distance;
            best = &point;
        }
    }
    return best;
}

QString ParetoChart::hoverText(const QPointF &value) const
{
    const Point *point = nearest(value);
    return point
               ? QStringLiteral("%1: error %2, %3 %4, tie set %5")
                     .arg(point->name, shortNumber(point->error), shortNumber(point->cost), QString::fromLatin1(titleOf(m_cost)))
                     .arg(point->tie + 1)
               : QString();
}

PlotTable ParetoChart::table() const
{
    PlotTable table{{"candidate", "relative_frobenius", m_cost == ComparisonMeasure::WeightBits ? "weight_bits" : "online_flops",
                     "tie", "front"},
                    {}};
    for (const Point &point : m_points) {
        table.rows.push_back({point.name, fullNumber(point.error), fullNumber(point.cost), QString::number(point.tie),
                              point.front ? "yes" : "no"});
    }
    return table;
}

} // namespace planish
