// Sections about what a plan costs, whether it may ship, what could be wrong, and how to get every number again.
#include <algorithm>

#include "core/report/report_sections.h"

namespace planish {

namespace {

std::string timeCell(const std::optional<TimeEstimate> &time)
{
    if (!time)
        return "–";
    return "<span title=\"transform " + shortNumber(time->transform) + ", quantize " + shortNumber(time->quantize) + ", GEMM " +
           shortNumber(time->gemm) + ", epilogue " + shortNumber(time->epilogue) + ", traffic " + shortNumber(time->traffic) +
           ", communication " + shortNumber(time->communication) + "\">" + shortNumber(time->total()) + "</span>";
}

std::string phaseTable(const PlanLedger &ledger, const char *name, const PhaseCost PlanLedger::*total,
                       const PhaseCost LayerLedger::*layer)
{
    std::vector<std::string> headings = {"layer",       "online flops", "online bytes", "launches", "run-time factors, bytes",
                                         "weight bytes"};
    const bool timed = !ledger.machine.empty();
    if (timed)
        headings.push_back("estimate, µs");
    HtmlTable table(headings, std::string(name) + ": " + countText(double((ledger.*total).tokens)) + " tokens at once");
    const auto add = [&](const std::string &label, const PhaseCost &cost, double metadata, double weights,
                         std::string_view rowClass) {
        std::vector<std::string> cells = {label,
                                          countText(cost.flops),
                                          countText(cost.bytes),
                                          countText(cost.launches),
                                          countText(metadata),
                                          countText(weights)};
        if (timed)
            cells.push_back(timeCell(cost.time));
        table.add(cells, rowClass);
    };
    for (const LayerLedger &each : ledger.layers)
        add(each.layer < 0 ? "other" : std::to_string(each.layer), each.*layer, each.metadataBytes, each.weightBytes, {});
    add("total", ledger.*total, ledger.metadataBytes, ledger.weightBytes, "chosen");
    return table.html();
}

std::string onlineTable(const PlanLedger &ledger)
{
    HtmlTable fits({"edge", "online operator", "factors, bytes", "tile, bytes", "on chip"}),
        shards({"edge", "choice", "possible", "bytes between devices per token", "what it means"});
    std::vector<std::string> notes;
    for (const EdgeLedger &entry : ledger.edges) {
        for (const OnChip &fit : entry.online)
            fits.add({escaped(entry.edge.value), escaped(fit.op), countText(fit.factorBytes), countText(fit.tileBytes),
                      fit.fits ? "<span class=\"good\">fits</span>" : "<span class=\"warn\">two passes</span>"});
        for (const ShardChoice &choice : entry.shards)
            shards.add({escaped(entry.edge.value), escaped(choice.choice), choice.possible ? "yes" : "no",
                        countText(choice.bytesPerToken), "<span class=\"say\">" + escaped(choice.sentence) + "</span>"});
        for (const std::string &note : entry.notes)
            notes.push_back(entry.edge.value + ": " + note);
    }
    return (fits.empty() ? "" : fits.html()) + (shards.empty() ? "" : "<h3>Tensor parallel choices</h3>" + shards.html()) +
           sentenceList(notes);
}

/// Names of the failure lab that this data or plan runs into.
std::vector<std::string> warnings(const ReportContent &c)
{
    std::vector<std::string> all = c.notes;
    for (const ReportProof &proof : c.proofs) {
        if (!proof.evaluation)
            continue;
        for (const auto &[name, count] : proof.evaluation->clamps) {
            if (count > 0)
                all.push_back(proof.edge.value + ": " + name + " " + std::to_string(count));
        }
    }
    if (!c.plan)
        return all;
    for (const Assignment &a : c.plan->assignments) {
        if (a.alone && a.alone->tokenDominated)
            all.push_back(a.edge.value + ": pooled error hides the typical token: " + percent(a.alone->topRowsShare) +
                          " of the output energy in the largest 1 % of rows");
        if (a.uncertainty && a.alone && a.alone->relativeFrobenius > 0 &&
            a.uncertainty->standardError > 0.1 * a.alone->relativeFrobenius)
            all.push_back(a.edge.value + ": wide: +-" + percent(a.uncertainty->standardError / a.alone->relativeFrobenius) +
                          " over " + std::to_string(a.uncertainty->units) + " " + a.uncertainty->unit + "s");
        if (a.candidate.selectedOn == "held_out")
            all.push_back(a.edge.value + ": chosen on held-out rows: select again before planning");
        if (a.deadChannels > 0)
            all.push_back(a.edge.value + ": " + std::to_string(a.deadChannels) + " dead channels: s = 1");
    }
    if (c.sealedOpened > 1)
        all.push_back("sealed rows opened " + std::to_string(c.sealedOpened) +
                      " times: what they say is no longer about unseen rows if the plan was tuned in between");
    return all;
}

} // namespace

HtmlSection ledgerSection(const ReportContent &c)
{
    if (!c.ledger)
        return {};
    const PlanLedger &ledger = *c.ledger;
    std::string html = "<p class=\"lead\">Weights " + shortNumber(ledger.weightBits) + " bits each with scales, " +
                       countText(ledger.weightBytes) + " bytes in all; conversion: " + std::to_string(ledger.tensorsRewritten) +
                       " tensors rewritten, " + std::to_string(ledger.onlineOperators) + " online operators, " +
                       std::to_string(ledger.files) + " files written.";
    if (!ledger.machine.empty())
        html += " Times are an <b>estimate</b> for " + escaped(ledger.machine) +
                " from a typed-in profile; parts are added, overlap is never assumed, nothing was timed.";
    html += "</p>" + phaseTable(ledger, "Prefill", &PlanLedger::prefill, &LayerLedger::prefill) +
            phaseTable(ledger, "Decode", &PlanLedger::decode, &LayerLedger::decode) + onlineTable(ledger);
    return {"ledger", "Ledger", html, "derived"};
}

HtmlSection legalitySection(const ReportContent &c)
{
    if (!c.plan)
        return {};
    std::string html;
    if (c.check) {
        html += c.check->legal ? "<p class=\"good\">Legal: no rule objects.</p>" : "<p class=\"bad\">Not legal as it stands.</p>";
        HtmlTable hashes({"hash", "state"});
        for (const auto &[name, state] : c.check->hashes)
            hashes.add({escaped(name), state == "passed"   ? "<span class=\"good\">passed</span>"
                                       : state == "failed" ? "<span class=\"bad\">failed</span>"
                                                           : escaped(state)});
        html += hashes.html();
    }
    HtmlTable table({"edge", "rule", "sentence", "severity"});
    if (c.check) {
        for (const CheckFinding &f : c.check->findings)
            table.add({escaped(f.edge), escaped(f.rule), "<span class=\"say\">" + escaped(f.sentence) + "</span>",
                       f.severity == Refusal::Severity::Error     ? "<span class=\"bad\">error</span>"
                       : f.severity == Refusal::Severity::Warning ? "<span class=\"warn\">warning</span>"
                                                                  : "note"});
    }
    for (const Assignment &a : c.plan->assignments) {
        if (a.status != "ok")
            table.add({escaped(a.edge.value), escaped(a.status), "<span class=\"say\">" + escaped(a.reason) + "</span>",
                       "kept as identity"});
    }
    for (const ChoiceLog &log : c.plan->choices) {
        for (const ChoiceEntry &entry : log.candidates) {
            if (entry.status != "ok" && entry.reason != "online" && entry.reason != "analysis_only")
                table.add({escaped(log.edge.value), escaped(entry.status),
                           "<span class=\"say\">" + escaped(entry.name + ": " + entry.reason) + "</span>", "candidate"},
                          "refused");
        }
    }
    return {"legality", "Legality", html + (table.empty() ? "" : table.html()), "derived"};
}

HtmlSection failureSection(const ReportContent &c)
{
    const std::vector<std::string> all = warnings(c);
    const std::string html =
        all.empty() ? "<p class=\"lead\">Nothing to warn of beyond the numbers above.</p>" : sentenceList(all);
    return {"caution", "What could mislead", html, "measured by us"};
}

HtmlSection commandSection(const ReportContent &c)
{
    std::string html = "<p class=\"lead\">Each line prints numbers of this page again, bit for bit, on the same files and "
                       "version; results do not depend on the number of "
                       "threads. Lines of single edges stand with the edge.</p>" +
                       commandBlock(c.commands);
    html += "<p class=\"lead\">All numbers, unrounded, are in the JSON block at the end of this file (element "
            "<code>planish-data</code>).</p>"
            "<p class=\"lead\">Labels: <b>measured by us</b> means computed by this program from the rows named; <b>derived</b> "
            "means algebra from stated definitions; "
            "<b>source-reported</b> means a paper or repository says so; <b>interpretation</b> may be disputed.</p>";
    return {"reproduce", "Reproduce", html, {}};
}

} // namespace planish
