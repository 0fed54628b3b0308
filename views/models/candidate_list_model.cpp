#include "views/models/candidate_list_model.h"

#include <cmath>
#include <limits>

#include "views/models/candidate_text.h"
#include "views/models/evaluation_store.h"
#include "views/models/number_text.h"
#include "views/models/status_text.h"

namespace planish {

CandidateListModel::CandidateListModel(QObject *parent) : QAbstractTableModel(parent), m_candidates(startingCandidates()) {}

std::vector<Candidate> CandidateListModel::startingCandidates()
{
    Candidate identity;
    identity.name = "none";
    identity.chain = {{"none", {}}};
    identity.act = parseQuantSpec("int8:token", planish::Role::Activation).value_or(QuantSpec{});
    identity.weight = parseQuantSpec("int8:row", planish::Role::Weight).value_or(QuantSpec{});
    Candidate smooth = identity;
    smooth.chain = {{"smoothquant", {{"alpha", "0.5"}}}};
    smooth.name = candidateLabel(smooth);
    return {identity, smooth};
}

void CandidateListModel::setStore(const EvaluationStore *store)
{
    m_store = store;
}

void CandidateListModel::setCurrent(int index)
{
    if (index >= 1 && index < size() && index != m_current) {
        m_current = index;
        emit currentChanged(index);
    }
}

void CandidateListModel::replaceAll(std::vector<Candidate> candidates, int current)
{
    const bool sameRows = candidates.size() == m_candidates.size();
    if (!sameRows) {
        beginResetModel();
    }
    m_candidates = std::move(candidates);
    const int before = m_current;
    m_current = std::clamp(current, 1, size() - 1);
    if (!sameRows) {
        endResetModel();
    } else {
        resultsChanged();
    }
    emit candidatesChanged();
    if (before != m_current || !sameRows) {
        emit currentChanged(m_current);
    }
}

int CandidateListModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : size();
}

int CandidateListModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QString CandidateListModel::text(int row, int column) const
{
    const EvaluationSlot *slot = m_store ? m_store->slot(row) : nullptr;
    const Evaluation *e = slot && slot->shown ? slot->shown.get() : nullptr;
    switch (column) {
    case NameColumn:
        return toQString(candidateLabel(at(row))) +
               (at(row).selectedOn.empty() ? QString() : QStringLiteral("  (selected on held-out rows)"));
    case ErrorColumn:
        return e && e->output ? shortNumber(e->output->relativeFrobenius) : QStringLiteral("-");
    case RowsColumn:
        return e ? countText(static_cast<double>(e->rows.heldOut)) : QStringLiteral("-");
    case GainColumn:
        return e ? shortNumber(e->gain) : QStringLiteral("-");
    case StatusColumn:
        return statusSentence(slot);
    default:
        return {};
    }
}

QVariant CandidateListModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid()) {
        return {};
    }
    const EvaluationSlot *slot = m_store ? m_store->slot(index.row()) : nullptr;
    const Evaluation *e = slot && slot->shown ? slot->shown.get() : nullptr;
    const double unknown = std::numeric_limits<double>::quiet_NaN();
    switch (role) {
    case Qt::DisplayRole:
        return text(index.row(), index.column());
    case Qt::ToolTipRole:
        if (index.column() == ErrorColumn && e && e->output) {
            return uncertaintySentence(*e);
        }
        return text(index.row(), index.column());
    case Qt::TextAlignmentRole:
        return static_cast<int>(
            Qt::AlignVCenter | (index.column() == NameColumn || index.column() == StatusColumn ? Qt::AlignLeft : Qt::AlignRight));
    case ErrorRole:
        return e && e->output ? e->output->relativeFrobenius : unknown;
    case LowRole:
        return e && e->uncertainty ? e->uncertainty->low : unknown;
    case HighRole:
        return e && e->uncertainty ? e->uncertainty->high : unknown;
    case StaleRole:
        return slot != nullptr && !slot->current();
    case StatusRole:
        return static_cast<int>(lightOf(slot));
    default:
        return {};
    }
}

QVariant CandidateListModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    static const QStringList names{"Candidate", "Output error", "Rows seen", "Gain", "Status"};
    static const QStringList tips{"Chain of methods and its parameters",
                                  "||E||_F / ||Y||_F on held-out rows, with its 95 % spread over requests or blocks",
                                  "Held-out rows this number saw", "Error of the identity divided by this error",
                                  "Green: the function is unchanged. Amber: the method changes it. Red: refused or failed"};
    if (orientation != Qt::Horizontal) {
        return role == Qt::DisplayRole ? QVariant(section == 0 ? QStringLiteral("id") : QString(QChar('A' + section - 1)))
                                       : QVariant();
    }
    if (role == Qt::DisplayRole) {
        return names.value(section);
    }
    return role == Qt::ToolTipRole ? QVariant(tips.value(section)) : QVariant();
}

void CandidateListModel::resultsChanged()
{
    emit dataChanged(index(0, 0), index(size() - 1, ColumnCount - 1));
}

} // namespace planish
