// The row of candidates on the Try tab: identity first (never removed), then the user's. One pair of specs for all of them, since
// candidates are compared under equal specs. Every change goes through replaceAll, so that undo is a list of values.
#pragma once

#include <vector>

#include <QAbstractTableModel>

#include "core/methods/method_table.h"

namespace planish {

class EvaluationStore;

class CandidateListModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { NameColumn, ErrorColumn, RowsColumn, GainColumn, StatusColumn, ColumnCount };
    /// What the painters read: low, high, value of the error; NaN where unknown.
    enum Role { ErrorRole = Qt::UserRole, LowRole, HighRole, StaleRole, StatusRole };

    explicit CandidateListModel(QObject *parent = nullptr);
    void setStore(const EvaluationStore *store); ///< results of the rows; read only

    const std::vector<Candidate> &candidates() const { return m_candidates; }
    const Candidate &at(int index) const { return m_candidates.at(static_cast<std::size_t>(index)); }
    int size() const { return static_cast<int>(m_candidates.size()); }
    int current() const { return m_current; } ///< the candidate the form edits; at least 1
    void setCurrent(int index);
    void replaceAll(std::vector<Candidate> candidates, int current); ///< called by undo commands only

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

    void resultsChanged();

    /// Identity and one SmoothQuant, int8 per token and per row.
    static std::vector<Candidate> startingCandidates();

signals:
    void candidatesChanged();
    void currentChanged(int index);

private:
    QString text(int row, int column) const;
    std::vector<Candidate> m_candidates;
    int m_current = 1;
    const EvaluationStore *m_store = nullptr;
};

} // namespace planish
