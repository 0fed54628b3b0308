#include "views/models/comparison_model.h"

#include <algorithm>
#include <cmath>

#include <QFont>

#include "views/models/number_text.h"
#include "views/models/status_text.h"

namespace planish {

const std::vector<ComparisonMeasureRow> &comparisonMeasures()
{
    static const std::vector<ComparisonMeasureRow> rows = {
        {ComparisonMeasure::Error, "output error", false},
        {ComparisonMeasure::RowsRms, "rows RMS", false},
        {ComparisonMeasure::RowsMedian, "median row", false},
        {ComparisonMeasure::Gain, "gain", true},
        {ComparisonMeasure::Sqnr, "SQNR dB", true},
        {ComparisonMeasure::OnlineFlops, "online flops", false},
        {ComparisonMeasure::WeightBits, "weight bits", false},
    };
    return rows;
}

std::optional<double> measureOf(const Evaluation &e, ComparisonMeasure measure)
{
    if (!e.output) {
        return std::nullopt;
    }
    switch (measure) {
    case ComparisonMeasure::Error:
        return e.output->relativeFrobenius;
    case ComparisonMeasure::RowsRms:
        return e.output->rows.rms;
    case ComparisonMeasure::RowsMedian:
        return e.output->rows.median;
    case ComparisonMeasure::Gain:
        return e.gain;
    case ComparisonMeasure::Sqnr:
        return e.output->sqnrDb;
    case ComparisonMeasure::OnlineFlops:
        return e.ledger.onlineFlopsPerToken;
    case ComparisonMeasure::WeightBits:
        return e.ledger.weightBits;
    }
    return std::nullopt;
}

void ComparisonModel::setEdge(std::shared_ptr<const Comparison> comparison, const EdgeId &edge)
{
    beginResetModel();
    m_comparison = std::move(comparison);
    m_rows.clear();
    for (const EdgeComparison &each : m_comparison->edges) {
        if (each.edge != edge) {
            continue;
        }
        for (const RankEntry &entry : each.ranking) {
            const bool pareto = std::find(each.pareto.begin(), each.pareto.end(), entry.index) != each.pareto.end();
            m_rows.push_back({&each.evaluations[entry.index], entry.tie, pareto, toQString(entry.reason)});
        }
        for (const Evaluation &evaluation : each.evaluations) {
            const bool ranked =
                std::any_of(m_rows.begin(), m_rows.end(), [&](const Row &row) { return row.evaluation == &evaluation; });
            if (!ranked) {
                m_rows.push_back({&evaluation, -1, false, {}});
            }
        }
    }
    endResetModel();
}

QString ComparisonModel::nameAt(int row) const
{
    return row >= 0 && row < rowCount() ? toQString(m_rows[static_cast<std::size_t>(row)].evaluation->candidate) : QString();
}

int ComparisonModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int ComparisonModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QString ComparisonModel::text(const Row &row, int column) const
{
    const Evaluation &e = *row.evaluation;
    switch (column) {
    case TieColumn:
        return row.tie < 0 ? QStringLiteral("-") : QString::number(row.tie + 1);
    case NameColumn:
        return toQString(e.candidate);
    case SpreadColumn:
        return e.uncertainty ? QStringLiteral("%1 to %2").arg(shortNumber(e.uncertainty->low), shortNumber(e.uncertainty->high))
                             : QStringLiteral("-");
    case StatusColumn:
        if (e.status != EvaluationStatus::Ok) {
            return statusSentence(e);
        }
        return QStringLiteral("%1%2%3").arg(row.pareto ? "Pareto" : "", row.pareto && e.output->tokenDominated ? ", " : "",
                                            e.output->tokenDominated ? "token-dominated" : "");
    default:
        return shortNumber(measureOf(e, comparisonMeasures()[static_cast<std::size_t>(column - FirstMeasure)].measure));
    }
}

bool ComparisonModel::best(const Row &row, int column) const
{
    if (column < FirstMeasure || column >= SpreadColumn) {
        return false;
    }
    const ComparisonMeasureRow &measure = comparisonMeasures()[static_cast<std::size_t>(column - FirstMeasure)];
    const auto mine = measureOf(*row.evaluation, measure.measure);
    return mine && std::none_of(m_rows.begin(), m_rows.end(), [&](const Row &other) {
               const auto theirs = measureOf(*other.evaluation, measure.measure);
               return theirs && (measure.higherIsBetter ? *theirs > *mine : *theirs < *mine);
           });
}

QVariant ComparisonModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || index.row() >= rowCount()) {
        return {};
    }
    const Row &row = m_rows[static_cast<std::size_t>(index.row())];
    const int column = index.column();
    if (role == Qt::DisplayRole) {
        return text(row, column);
    }
    if (role == SortRole) {
        if (column == NameColumn || column == StatusColumn) {
            return text(row, column);
        }
        if (column == TieColumn) {
            return row.tie < 0 ? 1 << 20 : row.tie * 1000 + index.row();
        }
        const auto value =
            column == SpreadColumn
                ? (row.evaluation->uncertainty ? std::optional(row.evaluation->uncertainty->standardError) : std::nullopt)
                : measureOf(*row.evaluation, comparisonMeasures()[static_cast<std::size_t>(column - FirstMeasure)].measure);
        return value.value_or(INFINITY);
    }
    if (role == Qt::FontRole && best(row, column)) {
        QFont bold;
        bold.setBold(true);
        return bold;
    }
    if (role == Qt::ToolTipRole) {
        if (column >= FirstMeasure && column < SpreadColumn) {
            const auto value =
                measureOf(*row.evaluation, comparisonMeasures()[static_cast<std::size_t>(column - FirstMeasure)].measure);
            return value ? fullNumber(*value) : QString();
        }
        return column == TieColumn || column == NameColumn ? row.reason : text(row, column);
    }
    if (role == Qt::TextAlignmentRole && column != NameColumn && column != StatusColumn) {
        return QVariant::fromValue(Qt::AlignRight | Qt::AlignVCenter);
    }
    return {};
}

QVariant ComparisonModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || section >= ColumnCount) {
        return {};
    }
    if (role == Qt::ToolTipRole && section == TieColumn) {
        return QStringLiteral("Tie set: candidates of one set cannot be told apart on these rows, or the typical row disagrees "
                              "with the pooled error");
    }
    if (role != Qt::DisplayRole) {
        return {};
    }
    switch (section) {
    case TieColumn:
        return QStringLiteral("set");
    case NameColumn:
        return QStringLiteral("candidate");
    case SpreadColumn:
        return QStringLiteral("95 % spread");
    case StatusColumn:
        return QStringLiteral("status");
    default:
        return QString::fromLatin1(comparisonMeasures()[static_cast<std::size_t>(section - FirstMeasure)].title);
    }
}

} // namespace planish
