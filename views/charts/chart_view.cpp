#include "views/charts/chart_view.h"

#include <cmath>

#include <QAreaSeries>
#include <QChart>
#include <QEvent>
#include <QGraphicsLayout>
#include <QLegendMarker>
#include <QLogValueAxis>
#include <QMouseEvent>
#include <QScatterSeries>
#include <QToolTip>
#include <QValueAxis>

namespace planish {

ChartView::ChartView(const QString &name, QWidget *parent) : QChartView(new QChart, parent)
{
    setAccessibleName(name);
    setRenderHint(QPainter::Antialiasing);
    setFrameShape(QFrame::NoFrame);
    setMouseTracking(true);
    setMinimumSize(160, 110);
    QFont small = font();
    small.setPointSizeF(small.pointSizeF() * 0.95);
    chart()->setTitle(name);
    chart()->setTitleFont(small);
    chart()->legend()->setAlignment(Qt::AlignTop);
    chart()->layout()->setContentsMargins(0, 0, 0, 0);
    styleChart(chart(), palette());
    addPlotMenu(
        this, [this] { return table(); }, [this] { return m_provenance ? m_provenance() : QString(); });
}

void ChartView::setEmptyText(const QString &text)
{
    m_emptyText = text;
    viewport()->update();
}

void ChartView::setStale(const QString &why)
{
    m_stale = why;
    viewport()->update();
}

void ChartView::clearAll()
{
    m_tones.clear();
    chart()->removeAllSeries();
    const auto axes = chart()->axes();
    for (QAbstractAxis *axis : axes) {
        chart()->removeAxis(axis);
        delete axis;
    }
}

QLineSeries *ChartView::addLine(const QString &name, const QList<QPointF> &points, SeriesTone tone, double width)
{
    auto *series = new QLineSeries;
    series->setName(name);
    series->replace(points);
    series->setPen(QPen(toneColour(tone, palette()), width));
    chart()->addSeries(series);
    m_tones.append({series, tone});
    return series;
}

void ChartView::addBand(const QString &name, const QList<QPointF> &low, const QList<QPointF> &high, SeriesTone tone)
{
    auto *lower = new QLineSeries;
    auto *upper = new QLineSeries;
    lower->replace(low);
    upper->replace(high);
    auto *area = new QAreaSeries(upper, lower);
    lower->setParent(area);
    upper->setParent(area);
    area->setName(name);
    chart()->addSeries(area);
    m_tones.append({area, tone});
}

void ChartView::addMarks(const QString &name, const QList<QPointF> &points, SeriesTone tone, double size)
{
    auto *series = new QScatterSeries;
    series->setName(name);
    series->replace(points);
    series->setMarkerSize(size);
    series->setBorderColor(Qt::transparent);
    chart()->addSeries(series);
    m_tones.append({series, tone});
}

ChartView::AxisSpec ChartView::fitted(const QString &title, AxisScale scale, double low, double high)
{
    if (!std::isfinite(low) || !std::isfinite(high)) {
        return {title, scale, scale == AxisScale::Logarithmic ? 0.1 : 0.0, 1.0};
    }
    if (scale == AxisScale::Logarithmic) {
        const double bottom = std::pow(10.0, std::floor(std::log10(low)));
        const double top = std::pow(10.0, std::ceil(std::log10(high) + 1e-9));
        return {title, scale, bottom, std::max(top, bottom * 10.0)};
    }
    const double span = high > low ? high - low : std::max(std::abs(high), 1e-12);
    return {title, scale, low, high + 0.05 * span};
}

namespace {
QAbstractAxis *makeAxis(const QString &title, AxisScale scale, double low, double high)
{
    if (scale == AxisScale::Logarithmic) {
        auto *axis = new QLogValueAxis;
        axis->setBase(10.0);
        axis->setRange(low, high);
        axis->setLabelFormat(low >= 1e-3 && high <= 1e5 ? "%g" : "%.0e");
        axis->setTitleText(title);
        axis->setMinorTickCount(0);
        return axis;
    }
    auto *axis = new QValueAxis;
    axis->setRange(low, high);
    axis->setTickCount(6);
    axis->setLabelFormat("%.4g");
    axis->setTitleText(title);
    return axis;
}
} // namespace

void ChartView::finish(const AxisSpec &x, const AxisSpec &y)
{
    QAbstractAxis *horizontal = makeAxis(x.title, x.scale, x.low, x.high);
    QAbstractAxis *vertical = makeAxis(y.title, y.scale, y.low, y.high);
    chart()->addAxis(horizontal, Qt::AlignBottom);
    chart()->addAxis(vertical, Qt::AlignLeft);
    QFont small = font();
    small.setPointSizeF(std::max(6.5, small.pointSizeF() * 0.85));
    for (QAbstractAxis *axis : {horizontal, vertical}) {
        axis->setLabelsFont(small);
        axis->setTitleFont(small);
    }
    const auto series = chart()->series();
    for (QAbstractSeries *one : series) {
        one->attachAxis(horizontal);
        one->attachAxis(vertical);
    }
    chart()->legend()->setFont(small);
    chart()->legend()->setVisible(series.size() > 1);
    recolour();
}

void ChartView::setTicks(double anchor, double interval)
{
    const auto axes = chart()->axes(Qt::Horizontal);
    for (QAbstractAxis *axis : axes) {
        if (auto *value = qobject_cast<QValueAxis *>(axis); value != nullptr && interval > 0) {
            value->setTickType(QValueAxis::TicksDynamic);
            value->setTickAnchor(anchor);
            value->setTickInterval(interval);
            value->setLabelFormat(interval >= 1 ? "%.0f" : "%.4g");
        }
    }
}

void ChartView::recolour()
{
    styleChart(chart(), palette());
    for (const auto &[series, tone] : m_tones) {
        const QColor colour = toneColour(tone, palette());
        if (auto *line = qobject_cast<QLineSeries *>(series)) {
            line->setPen(QPen(colour, line->pen().widthF()));
        } else if (auto *marks = qobject_cast<QScatterSeries *>(series)) {
            marks->setColor(colour);
        } else if (auto *area = qobject_cast<QAreaSeries *>(series)) {
            QColor fill = colour;
            fill.setAlpha(60);
            area->setBrush(fill);
            area->setPen(Qt::NoPen);
        }
    }
}

void ChartView::setMarker(std::optional<double> x)
{
    m_marker = x;
    viewport()->update();
}

QString ChartView::hoverText(const QPointF &value) const
{
    return QStringLiteral("%1, %2").arg(shortNumber(value.x()), shortNumber(value.y()));
}

void ChartView::drawForeground(QPainter *painter, const QRectF &rect)
{
    QChartView::drawForeground(painter, rect);
    painter->save();
    painter->resetTransform();
    const QRectF plot = chart()->plotArea();
    if (chart()->series().isEmpty()) {
        painter->setPen(faintText(palette()));
        painter->drawText(viewport()->rect().adjusted(12, 12, -12, -12), Qt::AlignCenter | Qt::TextWordWrap, m_emptyText);
    } else if (m_marker) {
        const double x = chart()->mapToPosition({*m_marker, 1.0}).x();
        if (x >= plot.left() && x <= plot.right()) {
            painter->setPen(QPen(toneColour(SeriesTone::Limit, palette()), 1.2, Qt::DashLine));
            painter->drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()));
        }
    }
    if (!m_stale.isEmpty() && !chart()->series().isEmpty()) {
        QColor veil = palette().color(QPalette::Base);
        veil.setAlpha(150);
        painter->fillRect(viewport()->rect(), veil);
        painter->setPen(palette().color(QPalette::Text));
        painter->drawText(viewport()->rect(), Qt::AlignCenter, m_stale);
    }
    painter->restore();
}

void ChartView::mousePressEvent(QMouseEvent *event)
{
    if (event->button() == Qt::LeftButton && !chart()->series().isEmpty() && chart()->plotArea().contains(event->position())) {
        emit pickedAt(chart()->mapToValue(event->position()).x());
    }
    QChartView::mousePressEvent(event);
}

void ChartView::mouseMoveEvent(QMouseEvent *event)
{
    if (!chart()->series().isEmpty() && chart()->plotArea().contains(event->position())) {
        QToolTip::showText(event->globalPosition().toPoint(), hoverText(chart()->mapToValue(event->position())), this);
    }
    QChartView::mouseMoveEvent(event);
}

void ChartView::changeEvent(QEvent *event)
{
    if (event->type() == QEvent::PaletteChange) {
        recolour();
    }
    QChartView::changeEvent(event);
}

} // namespace planish
