#include "views/panels/candidate_table.h"

#include <algorithm>
#include <cmath>

#include <QHeaderView>
#include <QPainter>
#include <QStyledItemDelegate>

#include "views/charts/chart_style.h"
#include "views/models/number_text.h"
#include "views/panels/provenance.h"

namespace planish {

namespace {

using Model = CandidateListModel;

/// Greys stale rows and paints the light of the status column.
class RowDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const override
    {
        QStyleOptionViewItem cell = option;
        if (index.data(Model::StaleRole).toBool() && index.column() != Model::NameColumn) {
            cell.palette.setColor(QPalette::Text, faintText(option.palette));
        }
        if (index.column() != Model::StatusColumn) {
            QStyledItemDelegate::paint(painter, cell, index);
            return;
        }
        const int size = option.fontMetrics.height() - 4;
        cell.rect.adjust(size + 8, 0, 0, 0);
        QStyledItemDelegate::paint(painter, cell, index);
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        painter->setPen(Qt::NoPen);
        painter->setBrush(lightColour(static_cast<Light>(index.data(Model::StatusRole).toInt()), option.palette));
        painter->drawEllipse(QRectF(option.rect.left() + 4, option.rect.center().y() - size / 2.0 + 0.5, size, size));
        painter->restore();
    }
};

/// Value and whisker on the log scale all rows share.
class WhiskerDelegate : public RowDelegate {
public:
    using RowDelegate::RowDelegate;

    void paint(QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const override
    {
        const double value = index.data(Model::ErrorRole).toDouble();
        const int number = option.fontMetrics.horizontalAdvance(QStringLiteral("0.00000e"));
        QStyleOptionViewItem cell = option;
        cell.rect.setWidth(number);
        RowDelegate::paint(painter, cell, index);
        double low = INFINITY, high = 0;
        for (int r = 0; r < index.model()->rowCount(); ++r) {
            for (const int role : {Model::ErrorRole, Model::LowRole, Model::HighRole}) {
                const double v = index.model()->index(r, index.column()).data(role).toDouble();
                if (std::isfinite(v) && v > 0) {
                    low = std::min(low, v);
                    high = std::max(high, v);
                }
            }
        }
        if (!std::isfinite(value) || value <= 0 || !(high > 0)) {
            return;
        }
        low = std::max(low, high * 1e-3);
        const QRectF box(option.rect.left() + number + 6, option.rect.top(), option.rect.width() - number - 14,
                         option.rect.height());
        const double span = std::max(1e-9, std::log(high / low));
        const auto x = [&](double v) {
            return box.left() + box.width() * std::clamp(std::log(std::max(v, low) / low) / span, 0.0, 1.0);
        };
        const bool stale = index.data(Model::StaleRole).toBool();
        const bool selected = option.state & QStyle::State_Selected;
        const QColor colour = selected ? option.palette.color(QPalette::HighlightedText)
                              : stale  ? faintText(option.palette)
                                       : toneColour(index.row() == 0 ? SeriesTone::Before : SeriesTone::Main, option.palette);
        const double y = box.center().y();
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        painter->setPen(QPen(colour, 1.6));
        const double from = index.data(Model::LowRole).toDouble(), to = index.data(Model::HighRole).toDouble();
        if (std::isfinite(from) && std::isfinite(to)) {
            painter->drawLine(QPointF(x(from), y), QPointF(x(to), y));
            painter->drawLine(QPointF(x(from), y - 4), QPointF(x(from), y + 4));
            painter->drawLine(QPointF(x(to), y - 4), QPointF(x(to), y + 4));
        }
        painter->setBrush(colour);
        painter->drawEllipse(QPointF(x(value), y), 3.5, 3.5);
        painter->restore();
    }
};

} // namespace

CandidateTable::CandidateTable(Session *session, QWidget *parent) : QTableView(parent), m_session(session)
{
    setModel(session->candidates());
    setItemDelegate(new RowDelegate(this));
    setItemDelegateForColumn(Model::ErrorColumn, new WhiskerDelegate(this));
    setSelectionBehavior(SelectRows);
    setSelectionMode(SingleSelection);
    setWordWrap(false);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setAccessibleName(QStringLiteral("Candidates"));
    verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 8);
    verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    horizontalHeader()->setStretchLastSection(true);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    addTableMenu(this, provenanceFor(session, ProvenanceOf::Candidate));
    connect(selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex &index) { m_session->candidates()->setCurrent(index.row()); });
    const auto showCurrent = [this] {
        updateGeometry();
        selectRow(m_session->candidates()->current());
    };
    connect(session->candidates(), &Model::currentChanged, this, showCurrent);
    connect(session->candidates(), &Model::modelReset, this, showCurrent);
    showCurrent();
}

QSize CandidateTable::sizeHint() const
{
    const int rows = std::clamp(m_session->candidates()->size(), 2, 4);
    return {600, horizontalHeader()->sizeHint().height() + rows * verticalHeader()->defaultSectionSize() + 4};
}

void CandidateTable::resizeEvent(QResizeEvent *event)
{
    QTableView::resizeEvent(event);
    fitColumns();
}

void CandidateTable::fitColumns()
{
    const int unit = fontMetrics().horizontalAdvance(QStringLiteral("0"));
    const int gain = 9 * unit, rows = 11 * unit;
    const int rest = viewport()->width() - gain - rows;
    setColumnWidth(Model::RowsColumn, rows);
    setColumnWidth(Model::GainColumn, gain);
    setColumnWidth(Model::NameColumn, rest * 30 / 100);
    setColumnWidth(Model::ErrorColumn, rest * 34 / 100);
}

} // namespace planish
