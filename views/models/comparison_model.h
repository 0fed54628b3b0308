// The table of a comparison on one edge: candidates x measures in ranking order, the best of each measure marked; or the totals
// over all edges compared.
#pragma once

#include <memory>

#include <QAbstractTableModel>

#include "core/evaluate/compare.h"

namespace planish {

enum class ComparisonMeasure { Error, RowsRms, RowsMedian, Gain, Sqnr, OnlineFlops, WeightBits };
struct ComparisonMeasureRow {
    ComparisonMeasure measure;
    const char *title;
    bool higherIsBetter;
};
const std::vector<ComparisonMeasureRow> &comparisonMeasures();
std::optional<double> measureOf(const Evaluation &evaluation, ComparisonMeasure measure);

class ComparisonModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { TieColumn, NameColumn, FirstMeasure, SpreadColumn = FirstMeasure + 7, StatusColumn, ColumnCount };
    enum Role { SortRole = Qt::UserRole };

    explicit ComparisonModel(QObject *parent = nullptr) : QAbstractTableModel(parent) {}
    void setEdge(std::shared_ptr<const Comparison> comparison, const EdgeId &edge);
    QString nameAt(int row) const;

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    struct Row {
        const Evaluation *evaluation = nullptr;
        int tie = -1; ///< -1: not ranked
        bool pareto = false;
        QString reason;
    };
    QString text(const Row &row, int column) const;
    bool best(const Row &row, int column) const;
    std::shared_ptr<const Comparison> m_comparison; ///< keeps the evaluations of the rows alive
    std::vector<Row> m_rows;
};

} // namespace planish
