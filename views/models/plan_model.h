// The table of the Plan tab: one row per edge and stream of the plan; before a plan is made, one row per edge with its pin.
#pragma once

#include <QAbstractTableModel>

#include "views/models/plan_store.h"

namespace planish {

class PlanModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column {
        EdgeColumn,
        ChosenColumn,
        AloneColumn,
        JointColumn,
        IdentityColumn,
        LegalityColumn,
        FusedColumn,
        OnlineColumn,
        ColumnCount
    };

    explicit PlanModel(const PlanStore *store, QObject *parent = nullptr);
    void setOpened(std::shared_ptr<const Opened> opened);
    EdgeId edgeAt(int row) const; ///< empty for a stream row
    const Assignment *assignmentAt(int row) const;

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    struct Row {
        EdgeId edge;
        QString name;
        const Assignment *assignment = nullptr; ///< inside the plan the store holds
    };
    void rebuild();
    QString text(const Row &row, int column) const;
    const PlanStore *m_store;
    std::shared_ptr<const Opened> m_opened;
    std::shared_ptr<const Plan> m_plan; ///< keeps the assignments of the rows alive
    std::vector<Row> m_rows;
};

} // namespace planish
