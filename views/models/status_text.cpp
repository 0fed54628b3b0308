#include "views/models/status_text.h"

#include "views/models/evaluation_store.h"
#include "views/models/number_text.h"

namespace planish {

namespace {
constexpr double kWide = 0.10; // a spread above 10 % of the value is said in words

QString nameList(const std::vector<std::string> &names)
{
    QStringList list;
    for (const std::string &name : names) {
        list << toQString(name);
    }
    return list.join(QStringLiteral(", "));
}
} // namespace

Light lightOf(const Evaluation &evaluation)
{
    if (evaluation.status != EvaluationStatus::Ok) {
        return Light::Red;
    }
    return evaluation.functionChange ? Light::Amber : Light::Green;
}

Light lightOf(const EvaluationSlot *slot)
{
    if (slot == nullptr) {
        return Light::Grey;
    }
    if (slot->error) {
        return slot->error->code == ErrorCode::Cancelled ? Light::Grey : Light::Red;
    }
    return slot->current() ? lightOf(*slot->shown) : Light::Grey;
}

QString statusSentence(const Evaluation &e)
{
    switch (e.status) {
    case EvaluationStatus::Refused:
        return QStringLiteral("refused: ") + toQString(e.reason);
    case EvaluationStatus::Failed:
        return QStringLiteral("failed: ") + toQString(e.reason);
    case EvaluationStatus::Ok:
        break;
    }
    if (e.functionChange) {
        return QStringLiteral("changes the function by %1").arg(shortNumber(*e.functionChange));
    }
    QString text = QStringLiteral("equivalent");
    if (e.equivalence) {
        text += QStringLiteral(", residual %1 (gate %2)")
                    .arg(shortNumber(e.equivalence->relativeFrobenius), shortNumber(e.equivalence->threshold));
    }
    if (e.analysisOnly) {
        text += QStringLiteral("; analysis only, cannot be planned");
    }
    return text;
}

QString statusSentence(const EvaluationSlot *slot)
{
    if (slot == nullptr) {
        return QStringLiteral("select an edge");
    }
    if (slot->error) {
        return messageOf(*slot->error);
    }
    if (!slot->current()) {
        return QStringLiteral("computing");
    }
    return statusSentence(*slot->shown);
}

QString uncertaintySentence(const Evaluation &e)
{
    if (!e.output) {
        return {};
    }
    const double value = e.output->relativeFrobenius;
    QString text = fullNumber(value);
    if (e.interval) {
        text += QStringLiteral("; sampled: %1 to %2 (%3 of %4 rows)")
                    .arg(shortNumber(e.interval->low), shortNumber(e.interval->high),
                         countText(static_cast<double>(e.interval->rows)), countText(static_cast<double>(e.rows.heldOut)));
    }
    if (e.uncertainty) {
        const Uncertainty &u = *e.uncertainty;
        text += QStringLiteral("; 95 % spread %1 to %2 over %3 %4s")
                    .arg(shortNumber(u.low), shortNumber(u.high))
                    .arg(u.units)
                    .arg(toQString(u.unit));
        if (value > 0 && u.standardError / value > kWide) {
            text += QStringLiteral(": wide, +-%1").arg(percentText(u.standardError / value));
        }
    } else {
        text += QStringLiteral("; spread unknown (one unit)");
    }
    return text;
}

QString dominationSentence(const Evaluation &e)
{
    if (!e.output || !e.output->tokenDominated) {
        return {};
    }
    return QStringLiteral(
               "Token-dominated: the largest 1 % of rows hold %1 of ||Y||². Typical rows: median %2, RMS %3, p95 %4, max %5.")
        .arg(percentText(e.output->topRowsShare), shortNumber(e.output->rows.median), shortNumber(e.output->rows.rms),
             shortNumber(e.output->rows.p95), shortNumber(e.output->rows.max));
}

QString ledgerSentence(const Evaluation &e)
{
    const Ledger &l = e.ledger;
    QString text = l.onlineFlopsPerToken > 0 || l.launches > 0
                       ? QStringLiteral("online %1 flops and %2 bytes per token, %3 launches")
                             .arg(countText(l.onlineFlopsPerToken), countText(l.onlineBytesPerToken), countText(l.launches))
                       : QStringLiteral("nothing online");
    text += QStringLiteral("; weights %1 bits").arg(shortNumber(l.weightBits));
    if (!l.fusedInto.empty()) {
        text += QStringLiteral("; folds into ") + nameList(l.fusedInto);
    }
    if (!l.online.empty()) {
        text += QStringLiteral("; stays online: ") + nameList(l.online);
    }
    return text;
}

QString splitSentence(const RowCounts &rows, const QString &unit)
{
    return QStringLiteral("calibration %1 · held-out %2 · sealed %3 rows, by %4")
        .arg(countText(static_cast<double>(rows.calibration)), countText(static_cast<double>(rows.heldOut)),
             countText(static_cast<double>(rows.sealed)), unit);
}

} // namespace planish
