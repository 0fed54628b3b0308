// Depth x site grid of one measure: layers along x, sites along y. Painted by hand; a click or the arrow keys pick an edge.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <QWidget>

#include "core/io/ids.h"
#include "views/charts/chart_style.h"
#include "views/charts/plot_export.h"

namespace planish {

struct DepthCell {
    EdgeId edge;
    std::int64_t layer = 0;
    QString site;
    std::optional<double> value;
    QString missing; ///< why there is no value: "waiting", "median is 0" …
};

class DepthMap : public QWidget {
    Q_OBJECT
public:
    explicit DepthMap(QWidget *parent = nullptr);
    void setCells(std::vector<DepthCell> cells, const QString &measure, AxisScale scale);
    void setSelected(const EdgeId &edge);
    void setProvenance(Provenance provenance) { m_provenance = std::move(provenance); }
    PlotTable table() const;
    QSize sizeHint() const override { return {640, 320}; }

signals:
    void edgePicked(const planish::EdgeId &edge);

protected:
    void paintEvent(QPaintEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;

private:
    struct Layout {
        QRectF grid;
        double cellWidth = 0, cellHeight = 0;
    };
    Layout layoutNow() const;
    QRectF rectOf(const DepthCell &cell, const Layout &layout) const;
    const DepthCell *cellAt(const QPointF &at) const;
    double positionOf(double value) const; ///< 0..1 on the colour map
    void paintAxes(QPainter &painter, const Layout &layout) const;
    void paintLegend(QPainter &painter, const Layout &layout) const;

    std::vector<DepthCell> m_cells;
    std::vector<std::int64_t> m_layers;
    QStringList m_sites;
    QString m_measure;
    EdgeId m_selected;
    Provenance m_provenance;
    double m_low = 0, m_high = 1;
    AxisScale m_scale = AxisScale::Logarithmic;
};

} // namespace planish
