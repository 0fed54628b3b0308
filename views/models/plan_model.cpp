#include "views/models/plan_model.h"

#include <algorithm>

#include "views/models/candidate_text.h"
#include "views/models/number_text.h"
#include "views/models/plan_text.h"

namespace planish {

PlanModel::PlanModel(const PlanStore *store, QObject *parent) : QAbstractTableModel(parent), m_store(store)
{
    connect(store, &PlanStore::planChanged, this, &PlanModel::rebuild);
}

void PlanModel::setOpened(std::shared_ptr<const Opened> opened)
{
    m_opened = std::move(opened);
    rebuild();
}

void PlanModel::rebuild()
{
    beginResetModel();
    m_rows.clear();
    m_plan = m_store->plan();
    if (m_plan) {
        for (const Assignment &a : m_plan->assignments) {
            const std::string name = a.edge.value.empty() ? a.stream.value : a.edge.value;
            m_rows.push_back({a.edge, toQString(name), &a});
        }
    } else if (m_opened) {
        for (const Edge &edge : m_opened->graph.edges) {
            m_rows.push_back({edge.id, toQString(edge.id.value), nullptr});
        }
    }
    endResetModel();
}

EdgeId PlanModel::edgeAt(int row) const
{
    return row >= 0 && row < rowCount() ? m_rows[static_cast<std::size_t>(row)].edge : EdgeId{};
}

const Assignment *PlanModel::assignmentAt(int row) const
{
    return row >= 0 && row < rowCount() ? m_rows[static_cast<std::size_t>(row)].assignment : nullptr;
}

int PlanModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int PlanModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QString PlanModel::text(const Row &row, int column) const
{
    const Assignment *a = row.assignment;
    const auto pin = m_store->pins().find(row.edge);
    const bool pinned = pin != m_store->pins().end();
    const auto error = [](const std::optional<OutputBlock> &block) {
        return block ? shortNumber(block->relativeFrobenius) : QStringLiteral("-");
    };
    const auto list = [](const std::vector<std::string> &names) {
        QStringList out;
        for (const std::string &name : names) {
            out << toQString(name);
        }
        return out.isEmpty() ? QStringLiteral("-") : out.join(", ");
    };
    if (column == EdgeColumn) {
        return row.name;
    }
    if (a == nullptr) {
        const Edge *edge = m_opened->graph.find(row.edge);
        const bool bare = edge != nullptr && std::ranges::none_of(edge->consumers, [](const Consumer &c) { return c.present; });
        if (bare && (column == ChosenColumn || column == LegalityColumn)) {
            return column == ChosenColumn ? QStringLiteral("cannot be planned")
                                          : QStringLiteral("its readers have no weights in this file");
        }
        return column == ChosenColumn ? (pinned ? toQString(candidateLabel(pin->second)) + QStringLiteral("  (pinned)")
                                                : QStringLiteral("not decided"))
                                      : QStringLiteral("-");
    }
    switch (column) {
    case ChosenColumn:
        return toQString(a->candidate.name.empty() ? candidateLabel(a->candidate) : a->candidate.name);
    case AloneColumn:
        return error(a->alone);
    case JointColumn:
        return error(a->joint);
    case IdentityColumn:
        return error(a->identity);
    case FusedColumn:
        return list(a->placement.fusedInto);
    case OnlineColumn:
        return list(a->ledger.online);
    case LegalityColumn:
        return legalitySentence(*a);
    default:
        return {};
    }
}

QVariant PlanModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid()) {
        return {};
    }
    const Row &row = m_rows[static_cast<std::size_t>(index.row())];
    if (role == Qt::DisplayRole || role == Qt::ToolTipRole) {
        return text(row, index.column());
    }
    if (role == Qt::TextAlignmentRole && index.column() >= AloneColumn && index.column() <= IdentityColumn) {
        return static_cast<int>(Qt::AlignRight | Qt::AlignVCenter);
    }
    return {};
}

QVariant PlanModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    static const QStringList names{"Edge",     "Chosen",   "Error alone", "Error joint",
                                   "Identity", "Legality", "Folds into",  "Stays online"};
    static const QStringList tips{"Edge or stream",
                                  "Candidate chosen by the rule, or pinned",
                                  "Output error on held-out rows with only this edge rewritten",
                                  "Output error with every fold of the plan applied",
                                  "Output error of the identity under the same specs",
                                  "Whether the fold is legal, and why not",
                                  "Tensors that take the factors",
                                  "Operators the runtime has to run"};
    if (orientation != Qt::Horizontal) {
        return {};
    }
    return role == Qt::DisplayRole   ? QVariant(names.value(section))
           : role == Qt::ToolTipRole ? QVariant(tips.value(section))
                                     : QVariant();
}

} // namespace planish
