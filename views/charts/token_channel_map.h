// Heat map of a tensor: rows (tokens, or layers) along y, channels along x. Maxima survive at every size: a pixel shows the value
// of largest magnitude it covers. Painted by hand from a QImage. Box zoom by dragging, double click shows everything.
#pragma once

#include <functional>
#include <memory>

#include <QImage>
#include <QWidget>

#include "views/charts/plot_export.h"
#include "views/models/image_region.h"

namespace planish {

enum class HeatMode { Magnitude, Signed };

class TokenChannelMap : public QWidget {
    Q_OBJECT
public:
    using RowLabel = std::function<QString(std::uint64_t row)>;

    explicit TokenChannelMap(const QString &name, QWidget *parent = nullptr);
    /// `rowLabel` names a row of the tensor; `rowTitle` says what rows are. A null image shows `emptyText`.
    void setImage(std::shared_ptr<const MaxImage> image, const QString &rowTitle, RowLabel rowLabel, const QString &emptyText);
    void setMode(HeatMode mode);
    void setContrast(double percentile); ///< 0.5..1: magnitude shown with the strongest colour
    void setSelection(std::int64_t row, std::int64_t channel);
    void setProvenance(Provenance provenance) { m_provenance = std::move(provenance); }
    const ImageRegion &region() const { return m_view; }
    PlotTable table() const; ///< the picture as shown: at most what fits the screen
    QSize sizeHint() const override { return {520, 300}; }

signals:
    void cellPicked(std::int64_t row, std::int64_t channel);
    void regionWanted(const planish::ImageRegion &region); ///< zoomed deeper than the loaded picture resolves

protected:
    void paintEvent(QPaintEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void changeEvent(QEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void mouseReleaseEvent(QMouseEvent *event) override;
    void mouseDoubleClickEvent(QMouseEvent *event) override;

private:
    QRectF plotRect() const;
    int labelWidth() const;
    void rebuild();           ///< picture for the current view, size and mode
    MaxImage cropped() const; ///< part of the loaded image inside the view
    double positionOf(float value) const;
    std::int64_t rowAt(double y) const;
    std::int64_t channelAt(double x) const;
    void setView(const ImageRegion &region);
    void paintAxes(QPainter &painter, const QRectF &plot) const;
    void paintLegend(QPainter &painter, const QRectF &plot) const;

    std::shared_ptr<const MaxImage> m_image;
    MaxImage m_shown;
    QImage m_picture;
    ImageRegion m_view;
    QString m_rowTitle, m_emptyText;
    RowLabel m_rowLabel;
    Provenance m_provenance;
    HeatMode m_mode = HeatMode::Magnitude;
    double m_contrast = 1.0, m_high = 1.0, m_low = 1e-3;
    std::int64_t m_row = -1, m_channel = -1;
    QPointF m_press, m_drag;
    bool m_dragging = false;
};

} // namespace planish
