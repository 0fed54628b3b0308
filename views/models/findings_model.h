// Findings of the selected edge as a table; every row says which rule matched, never why.
#pragma once

#include <QAbstractTableModel>

#include "core/run/engine.h"

namespace planish {

class FindingsModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { KindColumn, WhereColumn, ValueColumn, RuleColumn, SharingColumn, StabilityColumn, EvidenceColumn, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;

    void setEdge(std::shared_ptr<const EdgeAnalysis> edge); ///< null: empty
    const Finding &at(int row) const { return m_edge->findings.at(static_cast<std::size_t>(row)); }
    std::int64_t channelOf(int row) const; ///< -1 when the finding names none
    std::int64_t tokenOf(int row) const;

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    std::shared_ptr<const EdgeAnalysis> m_edge;
};

} // namespace planish
