// Left dock: filter box and the tree of edges with a severity bar each. Enter in the box jumps to what it names
// ("L12.down:3721").
#pragma once

#include <QLineEdit>
#include <QSortFilterProxyModel>
#include <QTreeView>
#include <QWidget>

#include "views/models/edge_tree_model.h"
#include "views/models/session.h"

namespace planish {

/// Keeps rows whose id, site or badges contain every word; "L12.down" reads as layer 12, down.
class EdgeFilter : public QSortFilterProxyModel {
    Q_OBJECT
public:
    using QSortFilterProxyModel::QSortFilterProxyModel;
    void setText(const QString &text);

protected:
    bool filterAcceptsRow(int row, const QModelIndex &parent) const override;

private:
    QStringList m_words;
};

class EdgesPanel : public QWidget {
    Q_OBJECT
public:
    explicit EdgesPanel(Session *session, QWidget *parent = nullptr);
    void focusFilter();
    bool clearFilter(); ///< false when there was nothing to clear
    const EdgeTreeModel *model() const { return m_model; }

signals:
    void searchFailed(const QString &message);

private:
    void search();
    void showSelected();
    Session *m_session;
    EdgeTreeModel *m_model;
    EdgeFilter *m_filter;
    QLineEdit *m_box;
    QTreeView *m_tree;
};

} // namespace planish
