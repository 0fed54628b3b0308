// Value histograms of two candidates over each other, |X'| on a logarithmic axis, and their difference.
#pragma once

#include "core/run/value_shapes.h"
#include "views/charts/chart_view.h"

namespace planish {

class ShapeChart : public ChartView {
    Q_OBJECT
public:
    explicit ShapeChart(QWidget *parent = nullptr);
    void setShapes(std::shared_ptr<const ValueShapes> shapes, const QString &first, const QString &second); ///< null: empty
    PlotTable table() const override;

private:
    QString hoverText(const QPointF &value) const override;
    std::size_t binAt(double x) const;
    std::shared_ptr<const ValueShapes> m_shapes;
    QString m_first, m_second;
};

} // namespace planish
