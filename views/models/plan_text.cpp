#include "views/models/plan_text.h"

#include "views/models/number_text.h"

namespace planish {

namespace {

QString escaped(const std::string &text)
{
    return toQString(text).toHtmlEscaped();
}

QString notesHtml(const std::vector<std::string> &notes)
{
    QString html;
    for (const std::string &note : notes) {
        html += "<li>" + escaped(note) + "</li>";
    }
    return html.isEmpty() ? html : "<ul>" + html + "</ul>";
}

} // namespace

QString errorHtml(const Error &error)
{
    return "<p><b>" + QString(error.code == ErrorCode::Cancelled ? "Cancelled. " : "Refused. ") + "</b>" +
           messageOf(error).toHtmlEscaped() + "</p>";
}

QString plannedHtml(const Plan &plan)
{
    int transformed = 0, refused = 0;
    double flops = 0;
    for (const Assignment &a : plan.assignments) {
        transformed += a.rewrite && !(a.rewrite->input.isIdentity() && !a.rewrite->output) ? 1 : 0;
        refused += a.status != "ok" ? 1 : 0;
        flops += a.ledger.onlineFlopsPerToken;
    }
    return QStringLiteral(
               "<p><b>Plan made.</b> %1 edges, %2 transformed, %3 kept as identity with a sentence; online %4 flops per token. "
               "Sealed rows were not opened. Save the manifest, apply it to a checkpoint, then verify.</p>%5")
        .arg(plan.assignments.size())
        .arg(transformed)
        .arg(refused)
        .arg(countText(flops), notesHtml(plan.notes));
}

QString savedHtml(const std::vector<std::string> &files)
{
    QStringList names;
    for (const std::string &file : files) {
        names << escaped(file);
    }
    return "<p><b>Saved.</b> " + names.join(", ") + "</p>";
}

QString appliedHtml(const ApplyResult &result)
{
    return QStringLiteral("<p><b>Applied.</b> %1: %2 tensors rewritten, %3 copied, %4 s.</p><p>basis in %5<br>basis out %6</p>")
        .arg(escaped(result.out))
        .arg(result.tensorsRewritten)
        .arg(result.tensorsCopied)
        .arg(shortNumber(result.seconds), escaped(result.basisIn), escaped(result.basisOut));
}

QString verifiedHtml(const VerifyResult &result)
{
    QString html = QStringLiteral("<p><b>%1</b> Sealed rows opened %2 %3, this run included (%4 rows).</p>")
                       .arg(result.passed ? "Verified: every edge passed." : "Verification failed.")
                       .arg(result.opened)
                       .arg(result.opened == 1 ? "time" : "times")
                       .arg(countText(static_cast<double>(result.rows.sealed)));
    html += "<table cellpadding='3'><tr><th align='left'>Edge</th><th>stored equivalence</th><th>gate</th><th>sealed error</th>"
            "<th>identity, sealed</th><th align='left'>result</th></tr>";
    for (const VerifyEdge &e : result.edges) {
        html += QStringLiteral("<tr><td>%1</td><td align='right'>%2</td><td align='right'>%3</td><td align='right'>%4</td><td "
                               "align='right'>%5</td>"
                               "<td>%6</td></tr>")
                    .arg(escaped(e.edge.value), shortNumber(e.storedRelativeFrobenius), shortNumber(e.threshold),
                         e.sealed ? shortNumber(e.sealed->relativeFrobenius) : QStringLiteral("-"),
                         e.identitySealed ? shortNumber(e.identitySealed->relativeFrobenius) : QStringLiteral("-"),
                         e.passed ? QStringLiteral("passed") : QStringLiteral("failed: ") + escaped(e.reason));
    }
    html += "</table>";
    if (!result.changedTensors.empty()) {
        html += "<p>Changed without being in the plan:</p>" + notesHtml(result.changedTensors);
    }
    return html;
}

QString legalitySentence(const Placement &placement)
{
    const Refusal *first = nullptr;
    for (const Refusal &refusal : placement.refusals) {
        if (first == nullptr || refusal.severity < first->severity) {
            first = &refusal;
        }
    }
    if (first == nullptr) {
        return QStringLiteral("legal");
    }
    return (first->severity == Refusal::Severity::Error ? QString() : QStringLiteral("legal; ")) + toQString(first->sentence);
}

QString legalitySentence(const Assignment &assignment)
{
    if (assignment.status != "ok" && !assignment.reason.empty()) {
        return toQString(assignment.reason);
    }
    return legalitySentence(assignment.placement);
}

} // namespace planish
