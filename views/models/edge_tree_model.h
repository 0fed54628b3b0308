// The tree of the left dock: layer > site, and below them the streams with their writers and readers. Filled from the graph at
// once, completed edge by edge as the analysis arrives.
#pragma once

#include <map>

#include <QStandardItemModel>

#include "core/graph/opened.h"

namespace planish {

class GeometryStore;

class EdgeTreeModel : public QStandardItemModel {
    Q_OBJECT
public:
    enum Role { EdgeRole = Qt::UserRole + 1, SeverityRole, BadgesRole };
    enum Column { NameColumn, SeverityColumn, ColumnCount };

    explicit EdgeTreeModel(const GeometryStore *geometry, QObject *parent = nullptr);
    void setOpened(std::shared_ptr<const Opened> opened);
    void refresh(const QString &edge); ///< analysis of that edge arrived
    QModelIndex indexOf(const EdgeId &edge) const;

private:
    void addStreams(const Opened &opened);
    const GeometryStore *m_geometry;
    std::shared_ptr<const Opened> m_opened;
    std::map<QString, QStandardItem *> m_items; ///< name item of each edge; owned by the model
};

/// "f16 384 x 576, rmsnorm layers.2.input_layernorm -> q_proj, k_proj, v_proj".
QString describeEdge(const Opened &opened, const Edge &edge);
/// present | partial | absent: which consumers have weights.
QString weightsState(const Edge &edge);

} // namespace planish
