#include "views/panels/findings_panel.h"

#include <QHeaderView>
#include <QVBoxLayout>

#include "views/panels/provenance.h"

namespace planish {

FindingsPanel::FindingsPanel(Session *session, QWidget *parent)
    : QWidget(parent), m_session(session), m_model(new FindingsModel(this)), m_table(new QTableView)
{
    m_table->setModel(m_model);
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setAlternatingRowColors(true);
    m_table->setWordWrap(false);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(m_table->fontMetrics().height() + 6);
    m_table->horizontalHeader()->setStretchLastSection(true);
    m_table->setAccessibleName(QStringLiteral("Findings"));
    addTableMenu(m_table, provenanceFor(session, ProvenanceOf::Edge));
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_table);
    connect(session->selection(), &Selection::edgeChanged, this, &FindingsPanel::refresh);
    connect(session->geometry(), &GeometryStore::edgeAnalysed, this, [this](const QString &edge) {
        if (edge.toStdString() == m_session->selection()->edge().value) {
            refresh();
        }
    });
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex &index) {
        if (index.isValid()) {
            m_session->selection()->setChannel(m_model->channelOf(index.row()));
            m_session->selection()->setToken(m_model->tokenOf(index.row()));
        }
    });
}

void FindingsPanel::refresh()
{
    m_model->setEdge(m_session->geometry()->edge(m_session->selection()->edge()));
    m_table->resizeColumnsToContents();
    for (int column = 0; column < FindingsModel::ColumnCount; ++column) {
        m_table->setColumnWidth(column, std::min(m_table->columnWidth(column), 230));
    }
}

} // namespace planish
