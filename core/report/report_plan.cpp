// Sections about the plan: result, table, equivalence proof, edges one by one.
#include <algorithm>
#include <cmath>

#include "core/report/report_sections.h"

namespace planish {

namespace {

std::string joined(const std::vector<std::string> &texts)
{
    std::string all;
    for (const std::string &text : texts)
        all += (all.empty() ? "" : ", ") + text;
    return all;
}

std::string labelOf(const Assignment &a)
{
    return a.edge.value.empty() ? "stream " + a.stream.value : a.edge.value;
}

const ReportProof *proofOf(const ReportContent &c, const EdgeId &edge)
{
    const auto found =
        std::find_if(c.proofs.begin(), c.proofs.end(), [&](const ReportProof &proof) { return proof.edge == edge; });
    return found == c.proofs.end() ? nullptr : &*found;
}

std::string spreadText(const std::optional<Uncertainty> &u)
{
    if (!u)
        return "–";
    return "<span title=\"over " + std::to_string(u->units) + " " + escaped(u->unit) + "s\">" + shortNumber(u->low) + " … " +
           shortNumber(u->high) + "</span>";
}

std::string dominationText(const OutputBlock &o)
{
    return "the largest 1 % of rows hold " + percent(o.topRowsShare) + " of ||Y||²; typical rows: median " +
           shortNumber(o.rows.median) + ", RMS " + shortNumber(o.rows.rms) + ", p95 " + shortNumber(o.rows.p95) + ", max " +
           shortNumber(o.rows.max);
}

std::string rowTable(const Assignment &a)
{
    HtmlTable table(
        {"held-out", "relative error", "SQNR dB", "rows median", "rows RMS", "rows p95", "rows max", "cosine", "max |E|"});
    const auto add = [&](const char *name, const std::optional<OutputBlock> &o) {
        if (o)
            table.add({name, numberCell(o->relativeFrobenius), numberCell(o->sqnrDb), numberCell(o->rows.median),
                       numberCell(o->rows.rms), numberCell(o->rows.p95), numberCell(o->rows.max), numberCell(o->cosine),
                       numberCell(o->maxAbs)});
    };
    add("identity", a.identity);
    add("plan, alone", a.alone);
    add("plan, joint", a.joint);
    return table.html();
}

std::string consumerTable(const Assignment &a)
{
    if (!a.alone || a.alone->perConsumer.size() < 2)
        return {};
    HtmlTable table({"consumer", "relative error"});
    for (const ConsumerError &consumer : a.alone->perConsumer)
        table.add({escaped(consumer.name), numberCell(consumer.relativeFrobenius)});
    return table.html();
}

std::string candidatesHtml(const ReportDecision &d)
{
    std::string html = "<figure><figcaption>Candidates by held-out error with 95 % spread; the band is the first tie set, orange "
                       "is the choice, dashed cannot enter a plan (" +
                       escaped(d.source) + ", rule " + escaped(d.rule) + ")</figcaption>" +
                       candidateChart(d.candidates, "relative output error, held-out rows") + "</figure>";
    if (const std::string pareto = paretoChart(d.candidates); !pareto.empty())
        html +=
            "<figure><figcaption>Error against online cost; the line is the Pareto front of all candidates shown</figcaption>" +
            pareto + "</figure>";
    return html;
}

std::string candidateTable(const ReportDecision &d)
{
    HtmlTable table({"candidate", "relative error", "95 % spread", "tie set", "online flops", "verdict"});
    for (const CandidateMark &m : d.candidates)
        table.add({escaped(m.name), numberCell(m.value),
                   m.low && m.high ? shortNumber(*m.low) + " … " + shortNumber(*m.high) : "–",
                   m.tie >= 0 ? std::to_string(m.tie) : "–", m.cost ? countText(*m.cost) : "–",
                   "<span class=\"say\">" + escaped(m.chosen ? "chosen" : m.note) + "</span>"},
                  m.chosen   ? "chosen"
                  : m.usable ? ""
                             : "refused");
    return table.html();
}

std::string chartsOf(const ReportProof &proof)
{
    if (proof.profileAfter.empty())
        return {};
    return "<figure><figcaption>Channel profile, calibration rows</figcaption>" +
           profileChart(proof.profileBefore, proof.profileAfter) +
           "</figure><figure><figcaption>Concentration of the energy: before (grey), after (blue)</figcaption>" +
           concentrationChart(proof.curveBefore, proof.curveAfter) + "</figure>";
}

std::string edgeDetails(const ReportContent &c, const Assignment &a)
{
    const ReportProof *proof = proofOf(c, a.edge);
    std::string summary = escaped(labelOf(a)) + "<small>" + escaped(a.candidate.name.empty() ? "none" : a.candidate.name);
    if (a.identity && a.alone)
        summary += ", " + shortNumber(a.identity->relativeFrobenius) + " → " + shortNumber(a.alone->relativeFrobenius);
    std::string html = "<details id=\"edge-" + escaped(a.edge.value) + "\"><summary>" + summary + "</small></summary>";
    if (!a.reason.empty())
        html += "<p class=\"warn\">" + escaped(a.reason) + "</p>";
    html += "<div class=\"charts\">" + (proof ? chartsOf(*proof) : std::string());
    for (const ReportDecision &d : c.decisions) {
        if (d.edge == a.edge)
            html += candidatesHtml(d);
    }
    html += "</div>" + rowTable(a) + consumerTable(a);
    for (const ReportDecision &d : c.decisions) {
        if (d.edge == a.edge)
            html += candidateTable(d) + sentenceList(d.notes) + (d.commands.empty() ? "" : commandBlock(d.commands));
    }
    std::vector<std::string> notes = a.notes;
    if (a.alone && a.alone->tokenDominated)
        notes.insert(notes.begin(), "Token-dominated: " + dominationText(*a.alone));
    if (proof && !proof->note.empty())
        notes.push_back(proof->note);
    html += sentenceList(notes);
    if (proof && !proof->commands.empty())
        html += commandBlock(proof->commands);
    return html + "</details>\n";
}

} // namespace

HtmlSection resultSection(const ReportContent &c)
{
    std::vector<BeforeAfter> rows;
    if (c.plan) {
        for (const Assignment &a : c.plan->assignments) {
            BeforeAfter row{labelOf(a), {}, {}, {}, {}, {}};
            if (a.identity)
                row.before = a.identity->relativeFrobenius;
            if (a.alone)
                row.after = a.alone->relativeFrobenius;
            if (a.joint)
                row.joint = a.joint->relativeFrobenius;
            if (a.uncertainty) {
                row.low = a.uncertainty->low;
                row.high = a.uncertainty->high;
            }
            rows.push_back(std::move(row));
        }
    }
    if (rows.empty())
        return {};
    return {"result", "Before and after",
            "<figure><figcaption>Relative output error on held-out rows: identity (ring), plan alone (blue) with its 95 % "
            "spread, and jointly after all folds where it differs "
            "(orange)</figcaption>" +
                beforeAfterChart(rows, "relative output error ||E|| / ||Y||, logarithmic") + "</figure>",
            "measured by us"};
}

HtmlSection planSection(const ReportContent &c)
{
    if (!c.plan)
        return {};
    HtmlTable table({"edge", "chosen", "identity", "alone", "95 % spread", "joint", "gain", "act / weight", "folds into",
                     "stays online", "status"});
    for (const Assignment &a : c.plan->assignments) {
        std::vector<std::string> online;
        for (const Operator &op : a.placement.online)
            online.push_back(nameOf(op));
        const std::optional<double> before = a.identity ? std::optional(a.identity->relativeFrobenius) : std::nullopt;
        const std::optional<double> after = a.alone ? std::optional(a.alone->relativeFrobenius) : std::nullopt;
        const std::string dominated =
            a.alone && a.alone->tokenDominated
                ? " <span class=\"warn\" title=\"" + escaped(dominationText(*a.alone)) + "\">token-dominated</span>"
                : "";
        table.add(
            {"<a href=\"#edge-" + escaped(a.edge.value) + "\">" + escaped(labelOf(a)) + "</a>",
             escaped(a.candidate.name.empty() ? "none" : a.candidate.name), numberCell(before), numberCell(after) + dominated,
             spreadText(a.uncertainty), numberCell(a.joint ? std::optional(a.joint->relativeFrobenius) : std::nullopt),
             before && after && *after > 0 ? shortNumber(*before / *after) + "×" : "–",
             escaped(canonicalText(a.candidate.act, Role::Activation) + " / " + canonicalText(a.candidate.weight, Role::Weight)),
             "<span class=\"say\">" + escaped(joined(a.placement.fusedInto)) + "</span>",
             "<span class=\"say\">" + escaped(online.empty() ? "nothing" : joined(online)) + "</span>",
             a.status == "ok" ? "<span class=\"good\">ok</span>"
                              : "<span class=\"say bad\">" + escaped(a.reason.empty() ? a.status : a.reason) + "</span>"},
            a.status == "ok" ? "" : "refused");
    }
    return {"plan", "The plan", table.html() + sentenceList(c.plan->notes), "measured by us"};
}

HtmlSection equivalenceSection(const ReportContent &c)
{
    if (!c.plan)
        return {};
    HtmlTable table(
        {"edge", "float64, plan", "float64, measured again", "gate", "stored dtype", "stored", "kappa", "rows", "verdict"},
        "Relative change of Y by the transform alone, before any quantizer. The gate is 1e-12 times the condition number of the "
        "non-diagonal part.");
    for (const Assignment &a : c.plan->assignments) {
        const ReportProof *proof = proofOf(c, a.edge);
        const Evaluation *again = proof && proof->evaluation ? &*proof->evaluation : nullptr;
        const double gate = equivalenceThreshold(StoredType::F64, a.conditioning.kappaNonDiagonal);
        const bool held = !a.equivalence || a.equivalence->relativeFrobenius <= gate;
        const bool heldAgain = !again || !again->equivalence || again->equivalence->relativeFrobenius <= gate;
        std::string verdict = held && heldAgain ? "<span class=\"good\">the function did not change</span>"
                                                : "<span class=\"bad\">above the gate</span>";
        if (a.functionChange)
            verdict = "<span class=\"warn\">changes the function by " + shortNumber(*a.functionChange) + "</span>";
        else if (!a.equivalence)
            verdict = "identity";
        table.add({escaped(labelOf(a)),
                   numberCell(a.equivalence ? std::optional(a.equivalence->relativeFrobenius) : std::nullopt),
                   numberCell(again && again->equivalence ? std::optional(again->equivalence->relativeFrobenius) : std::nullopt),
                   shortNumber(gate), escaped(a.equivalence ? a.equivalence->storedDtype : ""),
                   numberCell(a.equivalence ? std::optional(a.equivalence->storedRelativeFrobenius) : std::nullopt),
                   numberCell(a.conditioning.kappa), a.equivalence ? countText(double(a.equivalence->rows)) : "–", verdict});
    }
    std::string html = table.html();
    if (c.verify.empty()) {
        html += "<p class=\"lead\">No verify run stands beside the plan: the stored checkpoint has not been checked, and the "
                "sealed rows are unopened.</p>";
    } else {
        HtmlTable runs({"verify run", "result", "rows"}, "Sealed rows opened " + std::to_string(c.sealedOpened) + " times");
        for (const ReportVerifyRun &run : c.verify)
            runs.add({escaped(run.time), escaped(run.result), escaped(run.rows)});
        html += runs.html();
    }
    return {"equivalence", "Equivalence proof", html, "measured by us"};
}

HtmlSection edgesSection(const ReportContent &c)
{
    std::string html;
    if (c.plan) {
        for (const Assignment &a : c.plan->assignments)
            html += edgeDetails(c, a);
    }
    for (const ReportDecision &d : c.decisions) {
        const bool shown = c.plan && std::any_of(c.plan->assignments.begin(), c.plan->assignments.end(),
                                                 [&](const Assignment &a) { return a.edge == d.edge; });
        if (!shown)
            html += "<details><summary>" + escaped(d.edge.value) + "<small>" + escaped(d.source) +
                    "</small></summary><div class=\"charts\">" + candidatesHtml(d) + "</div>" + candidateTable(d) +
                    sentenceList(d.notes) + (d.commands.empty() ? "" : commandBlock(d.commands)) + "</details>\n";
    }
    return {"edges", "Edge by edge", html, "measured by us"};
}

} // namespace planish
