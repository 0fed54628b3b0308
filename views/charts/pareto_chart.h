// Error of candidates against what they cost: online flops or weight bits. The front is drawn, tie sets are named on hover.
#pragma once

#include "views/charts/chart_view.h"
#include "views/models/comparison_model.h"

namespace planish {

class ParetoChart : public ChartView {
    Q_OBJECT
public:
    explicit ParetoChart(QWidget *parent = nullptr);
    void setEdge(std::shared_ptr<const Comparison> comparison, const EdgeId &edge, ComparisonMeasure cost);
    void setSelected(const QString &candidate);
    PlotTable table() const override;

signals:
    void candidatePicked(const QString &name);

private:
    struct Point {
        QString name;
        double cost = 0, error = 0;
        int tie = -1;
        bool front = false;
    };
    void draw();
    const Point *nearest(const QPointF &value) const;
    QString hoverText(const QPointF &value) const override;
    std::vector<Point> m_points;
    ComparisonMeasure m_cost = ComparisonMeasure::OnlineFlops;
    QString m_selected;
};

} // namespace planish
