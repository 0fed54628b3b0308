#include "views/panels/inspector_text.h"

#include <algorithm>

#include "core/rows/split.h"
#include "views/models/candidate_text.h"
#include "views/models/edge_measures.h"
#include "views/models/edge_tree_model.h"
#include "views/models/number_text.h"
#include "views/models/plan_text.h"
#include "views/models/status_text.h"

namespace planish {

namespace {

class Table {
public:
    explicit Table(const QString &title)
        : m_html(QStringLiteral("<h4 style='margin-bottom:2px'>%1</h4><table cellspacing='0' cellpadding='1'>")
                     .arg(title.toHtmlEscaped()))
    {
    }
    Table &row(const QString &name, const QString &value)
    {
        m_html += QStringLiteral("<tr><td style='padding-right:8px'>%1</td><td><b>%2</b></td></tr>")
                      .arg(name.toHtmlEscaped(), value.toHtmlEscaped());
        return *this;
    }
    QString html() const { return m_html + "</table>"; }

private:
    QString m_html;
};

QString notesHtml(const std::vector<std::string> &notes)
{
    QString html;
    for (const std::string &note : notes) {
        html += "<li>" + toQString(note).toHtmlEscaped() + "</li>";
    }
    return html.isEmpty() ? html
                          : "<p style='margin-bottom:0'>Notes</p><ul style='margin-top:0; -qt-list-indent:0; margin-left:12px'>" +
                                html + "</ul>";
}

QString fieldText(const FieldValue &value)
{
    struct Visitor {
        QString operator()(std::monostate) const { return QStringLiteral("null"); }
        QString operator()(bool v) const { return v ? QStringLiteral("true") : QStringLiteral("false"); }
        QString operator()(std::int64_t v) const { return QString::number(v); }
        QString operator()(double v) const { return shortNumber(v); }
        QString operator()(const std::string &v) const { return toQString(v); }
        QString operator()(const std::vector<double> &v) const { return QStringLiteral("%1 values").arg(v.size()); }
        QString operator()(const std::vector<std::string> &v) const
        {
            QStringList list;
            std::ranges::transform(v, std::back_inserter(list), toQString);
            return list.join(", ");
        }
    };
    return std::visit(Visitor{}, value);
}

QString tokenText(const WorstToken &token)
{
    QString text = QStringLiteral("row %1").arg(token.row);
    if (!token.text.empty()) {
        text += QStringLiteral(" '%1'").arg(toQString(token.text).simplified());
    }
    return text +
           QStringLiteral(" (request %1, position %2): %3").arg(token.request).arg(token.position).arg(shortNumber(token.value));
}

} // namespace

QString tokenLabel(const Opened &opened, const DumpEdge &edge, std::int64_t row)
{
    const TokenTable &tokens = opened.dump->info().tokens;
    const auto token = static_cast<std::size_t>(tokenOfRow(edge, row));
    QString text = QString::number(row);
    if (token < tokens.text.size()) {
        text += QStringLiteral(" '%1'").arg(toQString(tokens.text[token]).simplified());
    }
    if (token < tokens.size()) {
        text += QStringLiteral(" (request %1, position %2)").arg(tokens.request[token]).arg(tokens.position[token]);
    }
    return text;
}

QString tokenAxisLabel(const Opened &opened, const DumpEdge &edge, std::int64_t row)
{
    const TokenTable &tokens = opened.dump->info().tokens;
    const auto token = static_cast<std::size_t>(tokenOfRow(edge, row));
    return token < tokens.text.size() ? QStringLiteral("%1 %2").arg(row).arg(toQString(tokens.text[token]).simplified())
                                      : QString::number(row);
}

QString edgeHtml(const Opened &opened, const Edge &edge, const EdgeAnalysis *analysis)
{
    const DumpEdge *stored = opened.dump->info().findEdge(edge.id);
    QStringList consumers, others;
    for (const Consumer &c : edge.consumers) {
        consumers << toQString(c.tensor.value) + (c.present ? QString() : QStringLiteral(" (no weights)"));
    }
    for (const OtherReader &r : edge.otherReaders) {
        others << toQString(r.name.empty() ? r.kind : r.name);
    }
    Table table(toQString(edge.id.value));
    table
        .row("stored", QStringLiteral("%1 [%2, %3]")
                           .arg(stored ? toQString(std::string(nameOf(stored->storedType))) : QString())
                           .arg(edge.rows)
                           .arg(edge.channels))
        .row("producer", nameOf(edge.producer).empty()
                             ? QStringLiteral("unknown")
                             : toQString(nameOf(edge.producer)) + " (" + toQString(kindOf(edge.producer)) + ")")
        .row("read by", consumers.isEmpty() ? QStringLiteral("nothing known") : consumers.join(", "))
        .row("also read by", others.isEmpty() ? QStringLiteral("nothing else known") : others.join(", "))
        .row("ties", edge.ties.count == 0 ? QStringLiteral("none")
                                          : QStringLiteral("%1, %2 sets").arg(toQString(edge.ties.key)).arg(edge.ties.count))
        .row("basis", toQString(edge.basis));
    QString html = table.html();
    if (analysis == nullptr || !analysis->statistics) {
        return html + "<p>Analysis is running.</p>";
    }
    const Statistics &s = *analysis->statistics;
    Table numbers(QStringLiteral("Geometry, all counted rows"));
    numbers.row("counted rows", countText(static_cast<double>(s.tokens)))
        .row("max |x|",
             QStringLiteral("%1 at row %2, channel %3").arg(shortNumber(s.argmaxValue)).arg(s.argmaxRow).arg(s.argmaxChannel))
        .row("median |x|", shortNumber(s.medianAbs) + (s.medianExact ? QString() : QStringLiteral(" (approximate)")))
        .row("max / median", maxToMedian(s) ? shortNumber(*maxToMedian(s)) : QStringLiteral("median is 0"))
        .row("C top 1, 8, 1 %", QStringLiteral("%1, %2, %3")
                                    .arg(shortNumber(analysis->concentration.c1), shortNumber(analysis->concentration.c8),
                                         shortNumber(analysis->concentration.c1pct)))
        .row("mean incoherence", shortNumber(meanIncoherence(s)))
        .row("kurtosis", shortNumber(s.tensor.kurtosis()))
        .row("zero rows", countText(static_cast<double>(s.zeroRows)))
        .row("findings", QString::number(analysis->findings.size()));
    if (s.nonFinite > 0) {
        numbers.row("non-finite", QStringLiteral("%1, first at row %2, channel %3")
                                      .arg(s.nonFinite)
                                      .arg(s.firstNonFiniteRow)
                                      .arg(s.firstNonFiniteChannel));
    }
    return html + numbers.html() + notesHtml(analysis->notes);
}

QString channelHtml(const Edge &edge, const EdgeAnalysis &analysis, std::int64_t channel, const Evaluation *after)
{
    const auto k = static_cast<std::size_t>(channel);
    if (!analysis.statistics || channel < 0 || k >= analysis.statistics->channel.maxAbs.size()) {
        return {};
    }
    const ChannelSums &c = analysis.statistics->channel;
    Table table(QStringLiteral("Channel %1").arg(channel));
    table.row("max |x|", shortNumber(c.maxAbs[k]))
        .row("min, max", QStringLiteral("%1, %2").arg(shortNumber(c.minimum[k]), shortNumber(c.maximum[k])))
        .row("energy", shortNumber(c.energy[k]))
        .row(QStringLiteral("occupancy of |x| > %1").arg(shortNumber(analysis.statistics->tau)),
             percentText(static_cast<double>(c.overTau[k]) /
                         std::max<double>(1, static_cast<double>(analysis.statistics->tokens))));
    if (k < analysis.weightMax.size()) {
        table.row("weight max", shortNumber(analysis.weightMax[k])).row("weight energy", shortNumber(analysis.weightEnergy[k]));
    }
    if (after != nullptr && after->geometryAfter && k < after->geometryAfter->channelMaxAbs.size()) {
        table.row("max |x| after transform", shortNumber(after->geometryAfter->channelMaxAbs[k]));
    }
    if (k < edge.ties.set.size() && edge.ties.set[k] >= 0) {
        const auto set = edge.ties.set[k];
        table.row("shares its factor with",
                  QStringLiteral("%1 channels (%2)").arg(std::ranges::count(edge.ties.set, set)).arg(toQString(edge.ties.key)));
    }
    return table.html();
}

QString tokenHtml(const Opened &opened, const Edge &edge, const EdgeAnalysis &analysis, std::int64_t row)
{
    const DumpEdge *stored = opened.dump->info().findEdge(edge.id);
    if (stored == nullptr || row < 0 || !analysis.statistics) {
        return {};
    }
    Table table(QStringLiteral("Token row ") + tokenLabel(opened, *stored, row));
    const TokenSums &tokens = analysis.statistics->token;
    const auto at = std::ranges::find(tokens.row, row);
    if (at == tokens.row.end()) {
        return table.row("counted", "no").html();
    }
    const auto i = static_cast<std::size_t>(at - tokens.row.begin());
    return table.row("max |x|", shortNumber(tokens.maxAbs[i]))
        .row("energy", shortNumber(tokens.energy[i]))
        .row("incoherence", shortNumber(tokens.incoherence[i]))
        .html();
}

QString evaluationHtml(const Evaluation &e)
{
    QString html = QStringLiteral("<h4 style='margin-bottom:2px'>%1</h4><p style='margin-top:0'>%2</p>")
                       .arg(toQString(e.candidate).toHtmlEscaped(), statusSentence(e).toHtmlEscaped());
    for (const FittedMember &member : e.chain) {
        Table fitted(toQString(member.method));
        for (const auto &[name, value] : member.params) {
            fitted.row(toQString(name), fieldText(value));
        }
        for (const auto &[name, value] : member.fitted) {
            fitted.row("found " + toQString(name), fieldText(value));
        }
        html += fitted.html();
    }
    if (e.output) {
        const OutputBlock &o = *e.output;
        Table table(QStringLiteral("Output error, %1 held-out rows").arg(countText(static_cast<double>(e.rows.heldOut))));
        table.row("relative Frobenius", shortNumber(o.relativeFrobenius));
        if (e.uncertainty) {
            table.row(QStringLiteral("95 % spread, %1 %2s").arg(e.uncertainty->units).arg(toQString(e.uncertainty->unit)),
                      QStringLiteral("%1 to %2").arg(shortNumber(e.uncertainty->low), shortNumber(e.uncertainty->high)));
        }
        table.row("gain over identity", shortNumber(e.gain))
            .row("SQNR", shortNumber(o.sqnrDb) + " dB")
            .row("cosine", shortNumber(o.cosine))
            .row("rows: median, RMS", QStringLiteral("%1, %2").arg(shortNumber(o.rows.median), shortNumber(o.rows.rms)))
            .row("rows: p95, max", QStringLiteral("%1, %2").arg(shortNumber(o.rows.p95), shortNumber(o.rows.max)))
            .row("worst token", tokenText(o.worstToken))
            .row("worst token, absolute", tokenText(o.worstTokenAbsolute))
            .row("worst channel", QStringLiteral("%1 [%2]: %3")
                                      .arg(toQString(o.worstChannel.consumer))
                                      .arg(o.worstChannel.channel)
                                      .arg(shortNumber(o.worstChannel.value)));
        for (const ConsumerError &c : o.perConsumer) {
            table.row(toQString(c.name), shortNumber(c.relativeFrobenius));
        }
        html += table.html();
    }
    if (e.terms) {
        html += Table(QStringLiteral("Error terms, of ||Y||²"))
                    .row("activation only", shortNumber(e.terms->activationOnly))
                    .row("weight only", shortNumber(e.terms->weightOnly))
                    .row("cross", shortNumber(e.terms->cross))
                    .row("interaction", shortNumber(e.terms->interaction))
                    .html();
    }
    const auto tensor = [&](const QString &title, const std::optional<TensorError> &t) {
        if (t) {
            html += Table(title)
                        .row("relative error", shortNumber(t->relativeFrobenius))
                        .row("rounded to zero", percentText(t->zeroedFraction))
                        .row("saturated", percentText(t->saturatedFraction))
                        .html();
        }
    };
    tensor(QStringLiteral("Activations as ") + toQString(canonicalText(e.act, Role::Activation)), e.activation);
    tensor(QStringLiteral("Weights as ") + toQString(canonicalText(e.weight, Role::Weight)), e.weightError);
    if (e.conditioning) {
        html += Table(QStringLiteral("Conditioning"))
                    .row("kappa", shortNumber(e.conditioning->kappa) +
                                      (e.conditioning->kappaIsBound ? QStringLiteral(" (bound)") : QString()))
                    .row("scale min, max", QStringLiteral("%1, %2").arg(shortNumber(e.conditioning->scaleMin),
                                                                        shortNumber(e.conditioning->scaleMax)))
                    .html();
    }
    if (e.geometryAfter) {
        html += Table(QStringLiteral("After the transform"))
                    .row("max |x|", shortNumber(e.geometryAfter->maxAbs))
                    .row("max / median",
                         e.geometryAfter->zeroMedian ? QStringLiteral("median is 0") : shortNumber(e.geometryAfter->maxToMedian))
                    .row("mean incoherence", shortNumber(e.geometryAfter->meanIncoherence))
                    .html();
    }
    html += Table(QStringLiteral("Ledger")).row("cost", ledgerSentence(e)).html();
    if (e.placement) {
        html += Table(QStringLiteral("Placement")).row("legality", legalitySentence(*e.placement)).html();
    }
    for (const auto &[name, count] : e.clamps) {
        html += QStringLiteral("<p>%1 clamped: %2</p>").arg(toQString(name).toHtmlEscaped()).arg(count);
    }
    return html + notesHtml(e.notes);
}

QString assignmentHtml(const Assignment &a)
{
    QStringList fused, online;
    std::ranges::transform(a.placement.fusedInto, std::back_inserter(fused), toQString);
    std::ranges::transform(a.ledger.online, std::back_inserter(online), toQString);
    Table table(toQString(a.edge.value.empty() ? a.stream.value : a.edge.value));
    table.row("chosen", toQString(candidateLabel(a.candidate)))
        .row("status", legalitySentence(a))
        .row("folds into", fused.join(", "))
        .row("stays online", online.isEmpty() ? QStringLiteral("nothing") : online.join(", "))
        .row("alone", a.alone ? shortNumber(a.alone->relativeFrobenius) : QStringLiteral("-"))
        .row("joint", a.joint ? shortNumber(a.joint->relativeFrobenius) : QStringLiteral("-"))
        .row("identity", a.identity ? shortNumber(a.identity->relativeFrobenius) : QStringLiteral("-"))
        .row("kappa", shortNumber(a.conditioning.kappa));
    if (a.equivalence) {
        table.row("equivalence, f64", shortNumber(a.equivalence->relativeFrobenius))
            .row("equivalence, " + toQString(a.equivalence->storedDtype), shortNumber(a.equivalence->storedRelativeFrobenius));
    }
    return table.html() + notesHtml(a.notes);
}

} // namespace planish
