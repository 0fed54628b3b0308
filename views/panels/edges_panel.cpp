#include "views/panels/edges_panel.h"

#include <QApplication>
#include <QHeaderView>
#include <QPainter>
#include <QRegularExpression>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

#include "views/charts/chart_style.h"
#include "views/models/number_text.h"

namespace planish {

namespace {

/// The bar behind the ratio: log10(max / median), full at 1000.
class SeverityDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const override
    {
        const QVariant severity = index.data(EdgeTreeModel::SeverityRole);
        if (!severity.isValid()) {
            QStyledItemDelegate::paint(painter, option, index);
            return;
        }
        QStyleOptionViewItem cell = option;
        initStyleOption(&cell, index);
        const QString text = cell.text;
        cell.text.clear();
        const QStyle *style = option.widget != nullptr ? option.widget->style() : QApplication::style();
        style->drawPrimitive(QStyle::PE_PanelItemViewItem, &cell, painter, option.widget);
        const QRectF box = QRectF(option.rect).adjusted(2, 3, -4, -3);
        const int number = option.fontMetrics.horizontalAdvance(QStringLiteral("8.888e+88"));
        const QRectF bar(box.left() + number + 4, box.top() + 1, std::max(4.0, box.width() - number - 4), box.height() - 2);
        const QPalette &palette = option.palette;
        painter->save();
        if (option.state & QStyle::State_Selected) {
            painter->fillRect(option.rect, palette.highlight());
        }
        painter->fillRect(bar, gridColour(palette));
        painter->fillRect(QRectF(bar.left(), bar.top(), bar.width() * severity.toDouble(), bar.height()),
                          severityColour(severity.toDouble(), palette));
        painter->setPen(palette.color(option.state & QStyle::State_Selected ? QPalette::HighlightedText : QPalette::Text));
        painter->drawText(QRectF(box.left(), option.rect.top(), number, option.rect.height()), Qt::AlignRight | Qt::AlignVCenter,
                          text);
        painter->restore();
    }
};

} // namespace

void EdgeFilter::setText(const QString &text)
{
    static const QRegularExpression layer(QStringLiteral("^[lL](\\d+)$"));
    QString name = text.trimmed();
    if (const auto colon = name.lastIndexOf(':'); colon >= 0) {
        name.truncate(colon);
    }
    m_words.clear();
    for (QString word : name.split(QRegularExpression(QStringLiteral("[.\\s*?]+")), Qt::SkipEmptyParts)) {
        const auto match = layer.match(word);
        m_words << (match.hasMatch() ? QStringLiteral(".%1.").arg(match.captured(1)) : word);
    }
    invalidateFilter();
}

bool EdgeFilter::filterAcceptsRow(int row, const QModelIndex &parent) const
{
    const QModelIndex index = sourceModel()->index(row, 0, parent);
    const QString text = index.data(EdgeTreeModel::EdgeRole).toString() + ' ' +
                         index.data(EdgeTreeModel::BadgesRole).toStringList().join(' ') + ' ' + index.data().toString();
    return std::all_of(m_words.begin(), m_words.end(),
                       [&](const QString &word) { return text.contains(word, Qt::CaseInsensitive); });
}

EdgesPanel::EdgesPanel(Session *session, QWidget *parent)
    : QWidget(parent), m_session(session), m_model(new EdgeTreeModel(session->geometry(), this)), m_filter(new EdgeFilter(this)),
      m_box(new QLineEdit), m_tree(new QTreeView)
{
    m_filter->setSourceModel(m_model);
    m_filter->setRecursiveFilteringEnabled(true);
    m_box->setPlaceholderText(QStringLiteral("Filter, or L12.down:3721"));
    m_box->setClearButtonEnabled(true);
    m_box->setAccessibleName(QStringLiteral("Filter edges"));
    m_tree->setModel(m_filter);
    m_tree->setItemDelegateForColumn(EdgeTreeModel::SeverityColumn, new SeverityDelegate(m_tree));
    m_tree->setUniformRowHeights(true);
    m_tree->setAccessibleName(QStringLiteral("Edges"));
    m_tree->setIndentation(14);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(4, 4, 4, 4);
    layout->addWidget(m_box);
    layout->addWidget(m_tree);

    connect(m_box, &QLineEdit::textChanged, this, [this](const QString &text) {
        m_filter->setText(text);
        m_tree->expandAll();
    });
    connect(m_box, &QLineEdit::returnPressed, this, &EdgesPanel::search);
    connect(m_tree->selectionModel(), &QItemSelectionModel::currentChanged, this, [this](const QModelIndex &index) {
        const QString edge = index.data(EdgeTreeModel::EdgeRole).toString();
        if (!edge.isEmpty()) {
            m_session->selection()->setEdge({edge.toStdString()});
        }
    });
    connect(session, &Session::openedChanged, this, [this] {
        m_box->clear();
        m_model->setOpened(m_session->opened());
        m_tree->expandAll();
        m_tree->header()->setStretchLastSection(true);
        m_tree->header()->resizeSection(0, m_tree->fontMetrics().horizontalAdvance(QStringLiteral("stream:residual")) +
                                               2 * m_tree->indentation());
        showSelected();
    });
    connect(session->geometry(), &GeometryStore::edgeAnalysed, m_model, &EdgeTreeModel::refresh);
    connect(session->selection(), &Selection::edgeChanged, this, &EdgesPanel::showSelected);
}

void EdgesPanel::focusFilter()
{
    m_box->setFocus();
    m_box->selectAll();
}

bool EdgesPanel::clearFilter()
{
    const bool had = !m_box->text().isEmpty();
    m_box->clear();
    return had;
}

void EdgesPanel::search()
{
    const auto found = m_session->find(m_box->text());
    if (!found) {
        emit searchFailed(messageOf(found.error()));
        return;
    }
    m_box->clear();
    showSelected();
}

void EdgesPanel::showSelected()
{
    const QModelIndex index = m_filter->mapFromSource(m_model->indexOf(m_session->selection()->edge()));
    if (index.isValid() && m_tree->currentIndex() != index) {
        m_tree->setCurrentIndex(index);
        m_tree->scrollTo(index);
    }
}

} // namespace planish
