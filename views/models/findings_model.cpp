#include "views/models/findings_model.h"

#include "views/models/number_text.h"

namespace planish {

namespace {

QString whereText(const nlohmann::json &where)
{
    QStringList parts;
    if (where.is_object()) {
        for (const auto &[key, value] : where.items()) {
            const QString text = value.is_number_float() ? shortNumber(value.get<double>())
                                 : value.is_string()     ? toQString(value.get<std::string>()).simplified()
                                                         : toQString(value.dump());
            parts << toQString(key) + ' ' + text;
        }
    }
    return parts.join(", ");
}

std::int64_t integerOf(const nlohmann::json &where, const char *key)
{
    const auto at = where.is_object() ? where.find(key) : where.end();
    return where.is_object() && at != where.end() && at->is_number_integer() ? at->get<std::int64_t>() : -1;
}

} // namespace

void FindingsModel::setEdge(std::shared_ptr<const EdgeAnalysis> edge)
{
    beginResetModel();
    m_edge = std::move(edge);
    endResetModel();
}

std::int64_t FindingsModel::channelOf(int row) const
{
    return integerOf(at(row).where, at(row).kind == "super_weight_candidate" ? "column" : "channel");
}

std::int64_t FindingsModel::tokenOf(int row) const
{
    return at(row).kind == "super_weight_candidate" ? -1 : integerOf(at(row).where, "row");
}

int FindingsModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() || !m_edge ? 0 : static_cast<int>(m_edge->findings.size());
}

int FindingsModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant FindingsModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !m_edge) {
        return {};
    }
    const Finding &f = at(index.row());
    if (role == Qt::ToolTipRole) {
        return toQString(f.id) + '\n' + toQString(f.rule.text);
    }
    if (role == Qt::TextAlignmentRole && (index.column() == ValueColumn || index.column() == StabilityColumn)) {
        return static_cast<int>(Qt::AlignRight | Qt::AlignVCenter);
    }
    if (role != Qt::DisplayRole) {
        return {};
    }
    switch (index.column()) {
    case KindColumn:
        return toQString(f.kind).replace('_', ' ') + (f.soft ? QStringLiteral(" (soft)") : QString());
    case WhereColumn:
        return whereText(f.where);
    case ValueColumn:
        return shortNumber(f.value);
    case RuleColumn:
        return QStringLiteral("%1 %2 %3")
            .arg(toQString(f.rule.statistic), toQString(f.rule.comparator), shortNumber(f.rule.threshold));
    case SharingColumn:
        return toQString(f.sharing);
    case StabilityColumn:
        return f.stability ? percentText(*f.stability) : QStringLiteral("-");
    case EvidenceColumn:
        return toQString(f.evidence);
    default:
        return {};
    }
}

QVariant FindingsModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    static const QStringList names{"Finding", "Where", "Value", "Rule", "Hurts sharing", "Stability", "Evidence"};
    return orientation == Qt::Horizontal && role == Qt::DisplayRole ? QVariant(names.value(section)) : QVariant();
}

} // namespace planish
