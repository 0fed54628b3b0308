// Small multiples: one measure over all layers compared, a small chart per site, identity beside two candidates.
#pragma once

#include <QWidget>

#include "views/charts/chart_view.h"
#include "views/models/comparison_model.h"

class QGridLayout;

namespace planish {

/// One site: the measure of each candidate over the layers.
class LayerChart : public ChartView {
    Q_OBJECT
public:
    explicit LayerChart(const QString &site, QWidget *parent = nullptr);
    struct Curve {
        QString name;
        QList<QPointF> points;
        SeriesTone tone = SeriesTone::Main;
    };
    void setCurves(std::vector<Curve> curves, const QString &measure, double low, double high, AxisScale scale);
    PlotTable table() const override;

private:
    std::vector<Curve> m_curves;
};

class LayerMultiples : public QWidget {
    Q_OBJECT
public:
    explicit LayerMultiples(QWidget *parent = nullptr);
    void setProvenance(Provenance provenance) { m_provenance = std::move(provenance); }
    void show(const Comparison &comparison, const QStringList &candidates, ComparisonMeasure measure);
    const std::vector<LayerChart *> &charts() const { return m_charts; }

private:
    QGridLayout *m_grid;
    Provenance m_provenance;
    std::vector<LayerChart *> m_charts;
};

} // namespace planish
