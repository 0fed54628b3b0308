#include "views/charts/token_channel_map.h"

#include <algorithm>
#include <cmath>

#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include "views/charts/chart_style.h"
#include "views/charts/colour_map.h"

namespace planish {

namespace {
constexpr int kTop = 26, kBottom = 36, kLegend = 84; // pixels around the picture
constexpr double kDecades = 4.0;                     // colours span at most this many decades below the maximum
constexpr double kDragFrom = 6.0;                    // shorter moves are clicks
} // namespace

TokenChannelMap::TokenChannelMap(const QString &name, QWidget *parent) : QWidget(parent)
{
    setMouseTracking(true);
    setMinimumSize(260, 150);
    setAccessibleName(name);
    setAccessibleDescription(
        QStringLiteral("Rows along y, channels along x. Drag a box to zoom, double click to see everything."));
    addPlotMenu(
        this, [this] { return table(); }, [this] { return m_provenance ? m_provenance() : QString(); });
}

void TokenChannelMap::setImage(std::shared_ptr<const MaxImage> image, const QString &rowTitle, RowLabel rowLabel,
                               const QString &emptyText)
{
    m_image = std::move(image);
    m_rowTitle = rowTitle;
    m_rowLabel = std::move(rowLabel);
    m_emptyText = emptyText;
    m_view =
        m_image ? ImageRegion{m_image->rowBegin, m_image->rowEnd, m_image->channelBegin, m_image->channelEnd} : ImageRegion{};
    rebuild();
}

void TokenChannelMap::setMode(HeatMode mode)
{
    m_mode = mode;
    rebuild();
}

void TokenChannelMap::setContrast(double percentile)
{
    m_contrast = std::clamp(percentile, 0.5, 1.0);
    rebuild();
}

void TokenChannelMap::setSelection(std::int64_t row, std::int64_t channel)
{
    m_row = row;
    m_channel = channel;
    update();
}

int TokenChannelMap::labelWidth() const
{
    return std::min(width() / 5, fontMetrics().horizontalAdvance(QStringLiteral("00000 constitution")));
}

QRectF TokenChannelMap::plotRect() const
{
    return {static_cast<double>(labelWidth()), kTop, std::max(1.0, static_cast<double>(width() - labelWidth() - kLegend)),
            std::max(1.0, static_cast<double>(height() - kTop - kBottom))};
}

MaxImage TokenChannelMap::cropped() const
{
    const MaxImage &all = *m_image;
    const std::uint64_t height = all.rowEnd - all.rowBegin, width = all.channelEnd - all.channelBegin;
    const auto cell = [](std::uint64_t at, std::uint64_t extent, std::size_t cells) {
        return static_cast<std::size_t>(at * cells / extent);
    };
    const std::size_t r0 = cell(m_view.rowBegin - all.rowBegin, height, all.rows);
    const std::size_t r1 = std::max(r0 + 1, cell(m_view.rowEnd - all.rowBegin, height, all.rows));
    const std::size_t c0 = cell(m_view.channelBegin - all.channelBegin, width, all.cols);
    const std::size_t c1 = std::max(c0 + 1, cell(m_view.channelEnd - all.channelBegin, width, all.cols));
    MaxImage part{r1 - r0, c1 - c0, m_view.rowBegin, m_view.rowEnd, m_view.channelBegin, m_view.channelEnd, {}};
    part.value.reserve(part.rows * part.cols);
    for (std::size_t r = r0; r < r1; ++r) {
        part.value.insert(part.value.end(), all.value.begin() + static_cast<std::ptrdiff_t>(r * all.cols + c0),
                          all.value.begin() + static_cast<std::ptrdiff_t>(r * all.cols + c1));
    }
    return part;
}

void TokenChannelMap::rebuild()
{
    m_picture = {};
    if (m_image) {
        const QRectF plot = plotRect();
        const double ratio = devicePixelRatioF();
        m_shown = reduceImage(cropped(), static_cast<std::size_t>(std::max(1.0, plot.height() * ratio)),
                              static_cast<std::size_t>(std::max(1.0, plot.width() * ratio)));
        std::vector<float> magnitudes(m_shown.value.size());
        std::transform(m_shown.value.begin(), m_shown.value.end(), magnitudes.begin(), [](float v) { return std::abs(v); });
        const auto rank = static_cast<std::ptrdiff_t>(m_contrast * static_cast<double>(magnitudes.size() - 1));
        std::nth_element(magnitudes.begin(), magnitudes.begin() + rank, magnitudes.end());
        m_high = std::max<double>(magnitudes[static_cast<std::size_t>(rank)], 1e-30);
        std::nth_element(magnitudes.begin(), magnitudes.begin() + static_cast<std::ptrdiff_t>(magnitudes.size() / 10),
                         magnitudes.end());
        m_low = std::clamp<double>(magnitudes[magnitudes.size() / 10], m_high * std::pow(10.0, -kDecades), m_high * 0.1);
        const auto colours = colourTable(m_mode == HeatMode::Magnitude ? ColourMap::Viridis : ColourMap::Diverging);
        QImage picture(static_cast<int>(m_shown.cols), static_cast<int>(m_shown.rows), QImage::Format_RGB32);
        for (std::size_t r = 0; r < m_shown.rows; ++r) {
            auto *line = reinterpret_cast<QRgb *>(picture.scanLine(static_cast<int>(r)));
            for (std::size_t c = 0; c < m_shown.cols; ++c) {
                line[c] = colours[static_cast<std::size_t>(std::lround(255.0 * positionOf(m_shown.value[r * m_shown.cols + c])))];
            }
        }
        m_picture = picture;
    }
    update();
}

double TokenChannelMap::positionOf(float value) const
{
    const double magnitude = std::abs(static_cast<double>(value));
    const double t = magnitude <= m_low ? 0.0 : std::min(1.0, std::log(magnitude / m_low) / std::log(m_high / m_low));
    return m_mode == HeatMode::Magnitude ? t : 0.5 + 0.5 * std::copysign(t, value);
}

std::int64_t TokenChannelMap::rowAt(double y) const
{
    const QRectF plot = plotRect();
    const auto rows = static_cast<double>(m_view.rowEnd - m_view.rowBegin);
    return static_cast<std::int64_t>(m_view.rowBegin) +
           static_cast<std::int64_t>(std::clamp((y - plot.top()) / plot.height() * rows, 0.0, std::max(0.0, rows - 1)));
}

std::int64_t TokenChannelMap::channelAt(double x) const
{
    const QRectF plot = plotRect();
    const auto channels = static_cast<double>(m_view.channelEnd - m_view.channelBegin);
    return static_cast<std::int64_t>(m_view.channelBegin) +
           static_cast<std::int64_t>(std::clamp((x - plot.left()) / plot.width() * channels, 0.0, std::max(0.0, channels - 1)));
}

void TokenChannelMap::setView(const ImageRegion &region)
{
    m_view = region;
    rebuild();
    const std::uint64_t rows = m_image->rowEnd - m_image->rowBegin, channels = m_image->channelEnd - m_image->channelBegin;
    if (m_image->rows < rows || m_image->cols < channels) {
        emit regionWanted(region);
    }
}

void TokenChannelMap::paintEvent(QPaintEvent *)
{
    QPainter painter(this);
    painter.fillRect(rect(), palette().color(QPalette::Base));
    if (m_picture.isNull()) {
        painter.setPen(faintText(palette()));
        painter.drawText(rect().adjusted(12, 12, -12, -12), Qt::AlignCenter | Qt::TextWordWrap, m_emptyText);
        return;
    }
    const QRectF plot = plotRect();
    painter.drawImage(plot, m_picture);
    painter.setPen(QPen(toneColour(SeriesTone::Limit, palette()), 1.2, Qt::DashLine));
    if (m_channel >= static_cast<std::int64_t>(m_view.channelBegin) && m_channel < static_cast<std::int64_t>(m_view.channelEnd)) {
        const double x = plot.left() + (static_cast<double>(m_channel) - static_cast<double>(m_view.channelBegin) + 0.5) *
                                           plot.width() / static_cast<double>(m_view.channelEnd - m_view.channelBegin);
        painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()));
    }
    if (m_row >= static_cast<std::int64_t>(m_view.rowBegin) && m_row < static_cast<std::int64_t>(m_view.rowEnd)) {
        const double y = plot.top() + (static_cast<double>(m_row) - static_cast<double>(m_view.rowBegin) + 0.5) * plot.height() /
                                          static_cast<double>(m_view.rowEnd - m_view.rowBegin);
        painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
    }
    paintAxes(painter, plot);
    paintLegend(painter, plot);
    if (m_dragging) {
        painter.setPen(QPen(palette().color(QPalette::Highlight), 1.5));
        painter.drawRect(QRectF(m_press, m_drag).normalized().intersected(plot));
    }
}

void TokenChannelMap::paintAxes(QPainter &painter, const QRectF &plot) const
{
    painter.setPen(palette().color(QPalette::Text));
    painter.drawText(QRectF(6, 2, width() - 12, kTop - 4), Qt::AlignLeft | Qt::AlignVCenter, accessibleName());
    const auto rows = static_cast<double>(m_view.rowEnd - m_view.rowBegin);
    const double lineHeight = fontMetrics().height();
    const double step = std::max(1.0, std::ceil(rows * lineHeight / plot.height()));
    for (double r = 0; r < rows; r += step) {
        const double y = plot.top() + (r + 0.5) * plot.height() / rows;
        const QString text = m_rowLabel ? m_rowLabel(m_view.rowBegin + static_cast<std::uint64_t>(r)) : QString();
        painter.drawText(QRectF(2, y - lineHeight / 2, plot.left() - 6, lineHeight), Qt::AlignRight | Qt::AlignVCenter,
                         fontMetrics().elidedText(text, Qt::ElideRight, static_cast<int>(plot.left()) - 8));
    }
    const auto channels = static_cast<double>(m_view.channelEnd - m_view.channelBegin);
    const int ticks = std::clamp(static_cast<int>(plot.width() / 80), 2, 9);
    for (int i = 0; i < ticks; ++i) {
        const double channel = std::floor(i * std::max(0.0, channels - 1) / (ticks - 1));
        const double x = plot.left() + (channel + 0.5) * plot.width() / channels;
        painter.drawText(QRectF(x - 40, plot.bottom() + 1, 80, lineHeight), Qt::AlignHCenter | Qt::AlignTop,
                         QString::number(m_view.channelBegin + static_cast<std::uint64_t>(channel)));
    }
    painter.setPen(faintText(palette()));
    painter.drawText(QRectF(plot.left(), plot.bottom() + 1 + lineHeight, plot.width(), lineHeight),
                     Qt::AlignHCenter | Qt::AlignTop, QStringLiteral("channel (down: %1)").arg(m_rowTitle));
}

void TokenChannelMap::paintLegend(QPainter &painter, const QRectF &plot) const
{
    const QRectF bar(plot.right() + 8, plot.top(), 10, plot.height());
    const ColourMap map = m_mode == HeatMode::Magnitude ? ColourMap::Viridis : ColourMap::Diverging;
    for (int y = 0; y < static_cast<int>(bar.height()); ++y) {
        painter.fillRect(QRectF(bar.left(), bar.bottom() - y - 1, bar.width(), 1.5), QColor(colourAt(map, y / bar.height())));
    }
    painter.setPen(palette().color(QPalette::Text));
    const QString low =
        m_mode == HeatMode::Magnitude ? QStringLiteral("≤ ") + QString::number(m_low, 'g', 2) : QString::number(-m_high, 'g', 3);
    painter.drawText(QRectF(bar.right() + 3, bar.top() - 2, 68, 16), Qt::AlignLeft, QString::number(m_high, 'g', 3));
    painter.drawText(QRectF(bar.right() + 3, bar.bottom() - 15, 68, 16), Qt::AlignLeft, low);
    if (m_mode == HeatMode::Signed) {
        painter.drawText(QRectF(bar.right() + 3, bar.center().y() - 8, 68, 16), Qt::AlignLeft, QStringLiteral("0"));
    }
}

void TokenChannelMap::resizeEvent(QResizeEvent *)
{
    rebuild();
}

void TokenChannelMap::changeEvent(QEvent *event)
{
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) {
        rebuild();
    }
    QWidget::changeEvent(event);
}

void TokenChannelMap::mousePressEvent(QMouseEvent *event)
{
    if (event->button() == Qt::LeftButton && m_image && plotRect().contains(event->position())) {
        m_press = m_drag = event->position();
        m_dragging = true;
    }
}

void TokenChannelMap::mouseMoveEvent(QMouseEvent *event)
{
    if (m_dragging) {
        m_drag = event->position();
        update();
        return;
    }
    const QRectF plot = plotRect();
    if (m_image && !m_shown.value.empty() && plot.contains(event->position())) {
        const auto r =
            static_cast<std::size_t>((event->position().y() - plot.top()) / plot.height() * static_cast<double>(m_shown.rows));
        const auto c =
            static_cast<std::size_t>((event->position().x() - plot.left()) / plot.width() * static_cast<double>(m_shown.cols));
        const float value = m_shown.value[std::min(r, m_shown.rows - 1) * m_shown.cols + std::min(c, m_shown.cols - 1)];
        const std::int64_t row = rowAt(event->position().y());
        QToolTip::showText(event->globalPosition().toPoint(),
                           QStringLiteral("%1, channel %2\n%3")
                               .arg(m_rowLabel ? m_rowLabel(static_cast<std::uint64_t>(row)) : QString::number(row))
                               .arg(channelAt(event->position().x()))
                               .arg(shortNumber(static_cast<double>(value))),
                           this);
    }
}

void TokenChannelMap::mouseReleaseEvent(QMouseEvent *event)
{
    if (!m_dragging) {
        return;
    }
    m_dragging = false;
    update();
    const QRectF box = QRectF(m_press, event->position()).normalized();
    if (box.width() < kDragFrom && box.height() < kDragFrom) {
        emit cellPicked(rowAt(event->position().y()), channelAt(event->position().x()));
        return;
    }
    setView({static_cast<std::uint64_t>(rowAt(box.top())), static_cast<std::uint64_t>(rowAt(box.bottom())) + 1,
             static_cast<std::uint64_t>(channelAt(box.left())), static_cast<std::uint64_t>(channelAt(box.right())) + 1});
}

void TokenChannelMap::mouseDoubleClickEvent(QMouseEvent *)
{
    if (m_image) {
        m_dragging = false;
        setView({m_image->rowBegin, m_image->rowEnd, m_image->channelBegin, m_image->channelEnd});
        emit regionWanted({});
    }
}

PlotTable TokenChannelMap::table() const
{
    PlotTable table{{m_rowTitle}, {}};
    if (!m_image) {
        return table;
    }
    const MaxImage part = reduceImage(cropped(), 512, 512);
    const auto first = [](std::uint64_t begin, std::uint64_t end, std::size_t i, std::size_t n) {
        return begin + (end - begin) * i / n;
    };
    for (std::size_t c = 0; c < part.cols; ++c) {
        table.header << QString::number(first(part.channelBegin, part.channelEnd, c, part.cols));
    }
    for (std::size_t r = 0; r < part.rows; ++r) {
        const std::uint64_t row = first(part.rowBegin, part.rowEnd, r, part.rows);
        QStringList cells{m_rowLabel ? m_rowLabel(row) : QString::number(row)};
        for (std::size_t c = 0; c < part.cols; ++c) {
            cells << fullNumber(static_cast<double>(part.value[r * part.cols + c]));
        }
        table.rows.push_back(cells);
    }
    return table;
}

} // namespace planish
