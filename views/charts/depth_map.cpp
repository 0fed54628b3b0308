#include "views/charts/depth_map.h"

#include <algorithm>
#include <cmath>

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include "views/charts/chart_style.h"
#include "views/charts/colour_map.h"

namespace planish {

namespace {
constexpr double kLegend = 96, kTop = 30, kBottom = 40; // pixels around the grid
constexpr double kMaxCellWidth = 150, kMaxCellHeight = 170;
const QStringList kSiteOrder{"attn_in", "attn_out", "mlp_in", "mlp_down", "residual"};
} // namespace

DepthMap::DepthMap(QWidget *parent) : QWidget(parent)
{
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
    setMinimumSize(320, 180);
    setAccessibleName(QStringLiteral("Map of all edges"));
    setAccessibleDescription(QStringLiteral("Layers along x, sites along y; arrow keys move, the context menu shows the table."));
    addPlotMenu(
        this, [this] { return table(); }, [this] { return m_provenance ? m_provenance() : QString(); });
}

void DepthMap::setCells(std::vector<DepthCell> cells, const QString &measure, AxisScale scale)
{
    m_cells = std::move(cells);
    m_measure = measure;
    m_layers.clear();
    m_sites.clear();
    for (const DepthCell &cell : m_cells) {
        m_layers.push_back(cell.layer);
        if (!m_sites.contains(cell.site)) {
            m_sites << cell.site;
        }
    }
    std::sort(m_layers.begin(), m_layers.end());
    m_layers.erase(std::unique(m_layers.begin(), m_layers.end()), m_layers.end());
    std::stable_sort(m_sites.begin(), m_sites.end(), [](const QString &a, const QString &b) {
        const auto rank = [](const QString &s) { return kSiteOrder.contains(s) ? kSiteOrder.indexOf(s) : kSiteOrder.size(); };
        return rank(a) < rank(b);
    });
    m_low = INFINITY;
    m_high = -INFINITY;
    m_scale = scale;
    for (const DepthCell &cell : m_cells) {
        if (cell.value && std::isfinite(*cell.value) && (scale == AxisScale::Linear || *cell.value > 0)) {
            m_low = std::min(m_low, *cell.value);
            m_high = std::max(m_high, *cell.value);
        }
    }
    update();
}

void DepthMap::setSelected(const EdgeId &edge)
{
    m_selected = edge;
    update();
}

double DepthMap::positionOf(double value) const
{
    if (!(m_high > m_low)) {
        return 0.5;
    }
    return m_scale == AxisScale::Logarithmic
               ? (std::log(std::max(value, m_low)) - std::log(m_low)) / (std::log(m_high) - std::log(m_low))
               : (value - m_low) / (m_high - m_low);
}

DepthMap::Layout DepthMap::layoutNow() const
{
    int left = 60;
    for (const QString &site : m_sites) {
        left = std::max(left, fontMetrics().horizontalAdvance(site) + 16);
    }
    Layout layout;
    const double columns = std::max<double>(1, static_cast<double>(m_layers.size()));
    const double rows = std::max<double>(1, static_cast<double>(m_sites.size()));
    layout.cellWidth = std::min(kMaxCellWidth, (width() - left - kLegend) / columns);
    layout.cellHeight = std::min(kMaxCellHeight, (height() - kTop - kBottom) / rows);
    layout.grid = QRectF(left, kTop, layout.cellWidth * columns, layout.cellHeight * rows);
    return layout;
}

QRectF DepthMap::rectOf(const DepthCell &cell, const Layout &layout) const
{
    const auto column = std::lower_bound(m_layers.begin(), m_layers.end(), cell.layer) - m_layers.begin();
    const auto row = m_sites.indexOf(cell.site);
    return {layout.grid.left() + static_cast<double>(column) * layout.cellWidth,
            layout.grid.top() + static_cast<double>(row) * layout.cellHeight, layout.cellWidth, layout.cellHeight};
}

const DepthCell *DepthMap::cellAt(const QPointF &at) const
{
    const Layout layout = layoutNow();
    const auto found =
        std::find_if(m_cells.begin(), m_cells.end(), [&](const DepthCell &c) { return rectOf(c, layout).contains(at); });
    return found == m_cells.end() ? nullptr : &*found;
}

void DepthMap::paintEvent(QPaintEvent *)
{
    QPainter painter(this);
    painter.fillRect(rect(), palette().color(QPalette::Base));
    if (m_cells.empty()) {
        painter.setPen(faintText(palette()));
        painter.drawText(rect(), Qt::AlignCenter, QStringLiteral("Open a dump to see its edges."));
        return;
    }
    const Layout layout = layoutNow();
    for (const DepthCell &cell : m_cells) {
        const QRectF box = rectOf(cell, layout).adjusted(0.5, 0.5, -0.5, -0.5);
        if (cell.value) {
            const QRgb colour = colourAt(ColourMap::Viridis, positionOf(*cell.value));
            painter.fillRect(box, QColor(colour));
            const QString text = shortNumber(*cell.value);
            if (fontMetrics().horizontalAdvance(text) + 4 < box.width() && fontMetrics().height() < box.height()) {
                painter.setPen(textColourOn(colour));
                painter.drawText(box, Qt::AlignCenter, text);
            }
        } else {
            painter.fillRect(box, palette().color(QPalette::AlternateBase));
            painter.fillRect(box, QBrush(gridColour(palette()), Qt::BDiagPattern));
        }
        if (cell.edge == m_selected) {
            painter.setPen(QPen(toneColour(SeriesTone::Limit, palette()), 2.5));
            painter.drawRect(box.adjusted(1, 1, -1, -1));
        }
    }
    paintAxes(painter, layout);
    paintLegend(painter, layout);
}

void DepthMap::paintAxes(QPainter &painter, const Layout &layout) const
{
    painter.setPen(palette().color(QPalette::Text));
    QFont bold = font();
    bold.setBold(true);
    painter.setFont(bold);
    painter.drawText(QRectF(8, 4, width() - 16, kTop - 6), Qt::AlignLeft | Qt::AlignVCenter, m_measure);
    painter.setFont(font());
    for (qsizetype i = 0; i < m_sites.size(); ++i) {
        const QRectF box(0, layout.grid.top() + static_cast<double>(i) * layout.cellHeight, layout.grid.left() - 8,
                         layout.cellHeight);
        painter.drawText(box, Qt::AlignRight | Qt::AlignVCenter, m_sites[i]);
    }
    const double labelWidth = fontMetrics().horizontalAdvance(QStringLiteral("000")) + 4;
    const auto step = static_cast<std::size_t>(std::max(1.0, std::ceil(labelWidth / std::max(1.0, layout.cellWidth))));
    for (std::size_t i = 0; i < m_layers.size(); i += step) {
        const double centre = layout.grid.left() + (static_cast<double>(i) + 0.5) * layout.cellWidth;
        painter.drawText(QRectF(centre - 40, layout.grid.bottom() + 2, 80, fontMetrics().height()),
                         Qt::AlignHCenter | Qt::AlignTop, m_layers[i] < 0 ? QStringLiteral("-") : QString::number(m_layers[i]));
    }
    painter.setPen(faintText(palette()));
    painter.drawText(QRectF(layout.grid.left(), layout.grid.bottom() + 2 + fontMetrics().height(),
                            std::max(80.0, layout.grid.width()), fontMetrics().height()),
                     Qt::AlignHCenter | Qt::AlignTop, QStringLiteral("layer"));
}

void DepthMap::paintLegend(QPainter &painter, const Layout &layout) const
{
    if (!std::isfinite(m_low)) {
        return;
    }
    const QRectF bar(layout.grid.right() + 12, layout.grid.top(), 12, layout.grid.height());
    for (int y = 0; y < static_cast<int>(bar.height()); ++y) {
        painter.fillRect(QRectF(bar.left(), bar.bottom() - y - 1, bar.width(), 1.5),
                         QColor(colourAt(ColourMap::Viridis, y / bar.height())));
    }
    painter.setPen(palette().color(QPalette::Text));
    const double left = bar.right() + 4;
    painter.drawText(QRectF(left, bar.top() - 2, 78, 16), Qt::AlignLeft | Qt::AlignTop, shortNumber(m_high));
    painter.drawText(QRectF(left, bar.bottom() - 16, 78, 18), Qt::AlignLeft | Qt::AlignBottom, shortNumber(m_low));
    painter.setPen(faintText(palette()));
    painter.drawText(QRectF(left, bar.center().y() - 8, 60, 16), Qt::AlignLeft | Qt::AlignVCenter,
                     m_scale == AxisScale::Logarithmic ? QStringLiteral("log") : QStringLiteral("linear"));
}

void DepthMap::mousePressEvent(QMouseEvent *event)
{
    const DepthCell *cell = cellAt(event->position());
    if (cell != nullptr && event->button() == Qt::LeftButton) {
        emit edgePicked(cell->edge);
    }
}

void DepthMap::mouseMoveEvent(QMouseEvent *event)
{
    if (const DepthCell *cell = cellAt(event->position())) {
        QToolTip::showText(event->globalPosition().toPoint(),
                           toQString(cell->edge.value) + '\n' + m_measure + ": " +
                               (cell->value ? shortNumber(*cell->value) : cell->missing),
                           this);
    }
}

void DepthMap::keyPressEvent(QKeyEvent *event)
{
    const auto current = std::find_if(m_cells.begin(), m_cells.end(), [&](const DepthCell &c) { return c.edge == m_selected; });
    const int dx = event->key() == Qt::Key_Right ? 1 : event->key() == Qt::Key_Left ? -1 : 0;
    const int dy = event->key() == Qt::Key_Down ? 1 : event->key() == Qt::Key_Up ? -1 : 0;
    if (current == m_cells.end() || (dx == 0 && dy == 0)) {
        QWidget::keyPressEvent(event);
        return;
    }
    const auto column = std::lower_bound(m_layers.begin(), m_layers.end(), current->layer) - m_layers.begin() + dx;
    const auto row = m_sites.indexOf(current->site) + dy;
    if (column < 0 || column >= static_cast<std::ptrdiff_t>(m_layers.size()) || row < 0 || row >= m_sites.size()) {
        return;
    }
    const auto next = std::find_if(m_cells.begin(), m_cells.end(), [&](const DepthCell &c) {
        return c.layer == m_layers[static_cast<std::size_t>(column)] && c.site == m_sites[row];
    });
    if (next != m_cells.end()) {
        emit edgePicked(next->edge);
    }
}

PlotTable DepthMap::table() const
{
    PlotTable table{{"edge", "layer", "site", m_measure}, {}};
    for (const DepthCell &cell : m_cells) {
        table.rows.push_back({toQString(cell.edge.value), QString::number(cell.layer), cell.site,
                              cell.value ? fullNumber(*cell.value) : cell.missing});
    }
    return table;
}

} // namespace planish
