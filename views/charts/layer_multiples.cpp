#include "views/charts/layer_multiples.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <QChart>
#include <QGridLayout>
#include <QLegendMarker>

#include "views/models/number_text.h"

namespace planish {

namespace {

constexpr double kLogFrom = 20.0;
constexpr SeriesTone kTones[] = {SeriesTone::Before, SeriesTone::Main, SeriesTone::Second};

struct Place {
    QString site;
    double layer = 0;
};

/// "layers.12.mlp_down" -> site and layer; an edge without a layer is a site of its own at 0.
Place placeOf(const EdgeId &edge)
{
    const QString name = toQString(edge.value);
    const QStringList parts = name.split('.');
    for (qsizetype i = 0; i + 1 < parts.size(); ++i) {
        bool number = false;
        const double layer = parts[i].toDouble(&number);
        if (number) {
            return {parts.mid(i + 1).join('.'), layer};
        }
    }
    return {name, 0};
}

} // namespace

LayerChart::LayerChart(const QString &site, QWidget *parent) : ChartView(site, parent)
{
    setAccessibleDescription(QStringLiteral("One measure over the layers of %1").arg(site));
    setMinimumSize(120, 90);
}

void LayerChart::setCurves(std::vector<Curve> curves, const QString &measure, double low, double high, AxisScale scale)
{
    clearAll();
    m_curves = std::move(curves);
    double first = INFINITY, last = -INFINITY;
    for (const Curve &curve : m_curves) {
        for (const QPointF &point : curve.points) {
            first = std::min(first, point.x());
            last = std::max(last, point.x());
        }
        if (curve.points.size() > 1) {
            addLine(curve.name, curve.points, curve.tone, 1.4);
        }
        addMarks(curve.points.size() > 1 ? QString() : curve.name, curve.points, curve.tone, 6.0);
    }
    if (!(first <= last)) {
        clearAll();
        return;
    }
    finish({QStringLiteral("layer"), AxisScale::Linear, first - 0.5, last + 0.5}, fitted(measure, scale, low, high));
    setTicks(first, std::max(1.0, std::ceil((last - first) / 6)));
    for (QLegendMarker *marker : chart()->legend()->markers()) {
        marker->setVisible(!marker->label().isEmpty());
    }
}

PlotTable LayerChart::table() const
{
    PlotTable table{{"candidate", "layer", "value"}, {}};
    for (const Curve &curve : m_curves) {
        for (const QPointF &point : curve.points) {
            table.rows.push_back({curve.name, QString::number(point.x()), fullNumber(point.y())});
        }
    }
    return table;
}

LayerMultiples::LayerMultiples(QWidget *parent) : QWidget(parent), m_grid(new QGridLayout(this))
{
    m_grid->setContentsMargins(0, 0, 0, 0);
    m_grid->setSpacing(2);
}

void LayerMultiples::show(const Comparison &comparison, const QStringList &candidates, ComparisonMeasure measure)
{
    std::map<QString, std::vector<LayerChart::Curve>> sites;
    double low = INFINITY, high = -INFINITY;
    for (const EdgeComparison &edge : comparison.edges) {
        const Place place = placeOf(edge.edge);
        auto &curves = sites[place.site];
        if (curves.empty()) {
            for (qsizetype i = 0; i < candidates.size(); ++i) {
                curves.push_back({candidates[i], {}, kTones[i % 3]});
            }
        }
        for (const Evaluation &e : edge.evaluations) {
            const auto value = measureOf(e, measure);
            const qsizetype at = candidates.indexOf(toQString(e.candidate));
            if (at < 0 || !value || !std::isfinite(*value)) {
                continue;
            }
            curves[static_cast<std::size_t>(at)].points.push_back({place.layer, *value});
            low = std::min(low, *value);
            high = std::max(high, *value);
        }
    }
    for (LayerChart *chart : m_charts) {
        delete chart;
    }
    m_charts.clear();
    const AxisScale scale = low > 0 && high / low > kLogFrom ? AxisScale::Logarithmic : AxisScale::Linear;
    const auto row = std::find_if(comparisonMeasures().begin(), comparisonMeasures().end(),
                                  [&](const ComparisonMeasureRow &each) { return each.measure == measure; });
    for (auto &[site, curves] : sites) {
        for (LayerChart::Curve &curve : curves) {
            std::sort(curve.points.begin(), curve.points.end(), [](const QPointF &a, const QPointF &b) { return a.x() < b.x(); });
        }
        auto *chart = new LayerChart(site);
        chart->setProvenance(m_provenance);
        chart->setCurves(std::move(curves), QString::fromLatin1(row->title),
                         scale == AxisScale::Linear ? std::min(0.0, low) : low, high, scale);
        const int index = static_cast<int>(m_charts.size());
        m_grid->addWidget(chart, index / 2, index % 2);
        m_charts.push_back(chart);
    }
}

} // namespace planish
