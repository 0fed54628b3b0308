// Base of the Qt Charts plots: style, axes, marker lines, a text when there is nothing to show, and picking by x.
#pragma once

#include <optional>

#include <QChartView>
#include <QLineSeries>

#include "views/charts/chart_style.h"
#include "views/charts/plot_export.h"

class QAreaSeries;
class QScatterSeries;

namespace planish {

class ChartView : public QChartView {
    Q_OBJECT
public:
    explicit ChartView(const QString &name, QWidget *parent = nullptr);
    void setProvenance(Provenance provenance) { m_provenance = std::move(provenance); }
    void setEmptyText(const QString &text); ///< shown while there is no series
    void setStale(const QString &why);      ///< greyed with a word, empty = current
    virtual PlotTable table() const = 0;

signals:
    void pickedAt(double x);

protected:
    struct AxisSpec {
        QString title;
        AxisScale scale = AxisScale::Linear;
        double low = 0, high = 1;
    };
    void clearAll();
    QLineSeries *addLine(const QString &name, const QList<QPointF> &points, SeriesTone tone, double width = 1.4);
    void addBand(const QString &name, const QList<QPointF> &low, const QList<QPointF> &high, SeriesTone tone);
    void addMarks(const QString &name, const QList<QPointF> &points, SeriesTone tone, double size);
    void finish(const AxisSpec &x, const AxisSpec &y); ///< after the series: axes, legend, style
    void setTicks(double anchor, double interval);     ///< of the linear x axis, after finish
    void setMarker(std::optional<double> x);           ///< vertical line, e.g. the selected channel
    static AxisSpec fitted(const QString &title, AxisScale scale, double low, double high);
    virtual QString hoverText(const QPointF &value) const;

    void drawForeground(QPainter *painter, const QRectF &rect) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void changeEvent(QEvent *event) override;

private:
    void recolour();
    Provenance m_provenance;
    QString m_emptyText, m_stale;
    std::optional<double> m_marker;
    QList<std::pair<QAbstractSeries *, SeriesTone>> m_tones;
};

} // namespace planish
