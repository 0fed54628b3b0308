// Output error against one parameter, with the 95 % spread as a band and the minimum marked. A click picks the nearest value.
#pragma once

#include "core/run/engine.h"
#include "views/charts/chart_view.h"

namespace planish {

class SweepChart : public ChartView {
    Q_OBJECT
public:
    explicit SweepChart(QWidget *parent = nullptr);
    void setSweep(std::shared_ptr<const Sweep> sweep); ///< null: empty
    void setCurrentValue(std::optional<double> value); ///< where the candidate stands now
    PlotTable table() const override;

signals:
    void valuePicked(double value);

private:
    QString hoverText(const QPointF &value) const override;
    std::size_t nearest(double x) const;
    std::shared_ptr<const Sweep> m_sweep;
};

} // namespace planish
