// C_r: the share of energy in the r largest channels, against r on a log axis.
#pragma once

#include "views/charts/chart_view.h"

namespace planish {

class ConcentrationCurve : public ChartView {
    Q_OBJECT
public:
    explicit ConcentrationCurve(QWidget *parent = nullptr);
    void setCurve(std::vector<double> shares, std::size_t onePercent); ///< shares[r-1] = C_r; marks r of the top 1 %
    PlotTable table() const override;

private:
    QString hoverText(const QPointF &value) const override;
    std::vector<double> m_shares;
};

} // namespace planish
