// Sections about the data: where it comes from, the map, the worst edges, the findings.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/report/report_sections.h"

namespace planish {

namespace {

constexpr std::size_t kOffenders = 20, kFindingsPerKind = 12;

std::string card(const std::string &number, const std::string &meaning)
{
    return "<div class=\"card\"><b>" + number + "</b><span>" + escaped(meaning) + "</span></div>";
}

std::string rowsSentence(const ReportContent &c)
{
    return "calibration " + countText(double(c.rows.calibration)) + " (validation " + countText(double(c.rows.validation)) +
           " of them), held-out " + countText(double(c.rows.heldOut)) + ", sealed " + countText(double(c.rows.sealed)) + " of " +
           countText(double(c.rows.available)) + " rows";
}

std::string planCards(const ReportContent &c)
{
    const Plan &plan = *c.plan;
    std::size_t changed = 0, refused = 0;
    double product = 0, worst = 0;
    int gains = 0;
    for (const Assignment &a : plan.assignments) {
        changed += a.candidate.name != "none" && a.status == "ok" ? 1 : 0;
        refused += a.status != "ok" ? 1 : 0;
        if (a.alone && a.identity && a.alone->relativeFrobenius > 0 && a.identity->relativeFrobenius > 0) {
            product += std::log(a.identity->relativeFrobenius / a.alone->relativeFrobenius);
            ++gains;
        }
        if (a.equivalence)
            worst = std::max(worst, a.equivalence->relativeFrobenius);
    }
    std::string html = card(std::to_string(changed) + " of " + std::to_string(plan.assignments.size()), "edges transformed");
    if (gains > 0)
        html += card(shortNumber(std::exp(product / gains)) + "×", "geometric gain over identity, held-out rows");
    html += card(shortNumber(worst), "largest change of the function in float64, before any quantizer");
    if (c.ledger) {
        html += card(shortNumber(c.ledger->weightBits), "bits per weight, scales included");
        html += card(countText(c.ledger->onlineFlopsPerToken), "online flops per token");
    }
    if (refused > 0)
        html += card(std::to_string(refused), "edges kept as identity with a reason");
    html += card(std::to_string(c.sealedOpened) + "×", "sealed rows opened by verify");
    return html;
}

std::string whereText(const Finding &finding)
{
    std::string text;
    for (const auto &[key, value] : finding.where.items()) {
        if (value.is_null() || value.is_array() || value.is_object())
            continue;
        text += (text.empty() ? "" : ", ") + key + " " +
                (value.is_string()         ? value.get<std::string>()
                 : value.is_number_float() ? shortNumber(value.get<double>())
                                           : value.dump());
    }
    return text;
}

} // namespace

std::string leadHtml(const ReportContent &c)
{
    std::string html = "<p class=\"lead\">Rows, " + escaped(c.splitText) + ": " + escaped(rowsSentence(c)) +
                       ". Fits saw calibration rows only; every error below is measured on held-out rows. Planish " +
                       escaped(c.version) + ", backend " + escaped(c.backend) + ", " + escaped(c.created) +
                       ".</p>\n<div class=\"cards\">";
    std::size_t findings = 0;
    for (const ReportEdge &edge : c.edges)
        findings += edge.findings.size();
    html += card(countText(double(c.edges.size())), "edges analyzed") + card(countText(double(findings)), "findings");
    if (c.plan)
        html += planCards(c);
    return html + "</div>\n";
}

HtmlSection provenanceSection(const ReportContent &c)
{
    HtmlTable files({"file", "role", "bytes", "SHA-256"});
    for (const ReportFile &file : c.files)
        files.add({escaped(file.name), escaped(file.role), countText(double(file.bytes)),
                   file.sha256.empty() ? escaped(file.note) : "<span class=\"hash\">" + escaped(file.sha256) + "</span>"});
    std::string html = files.html();
    HtmlTable parts({"part", "rows", "units", "read by"});
    const auto units = [&](const std::vector<std::string> &ids) {
        std::string text;
        for (std::size_t i = 0; i < ids.size() && i < 12; ++i)
            text += (i ? ", " : "") + ids[i];
        return "<span class=\"say\">" + escaped(text) + (ids.size() > 12 ? " … (" + std::to_string(ids.size()) + ")" : "") +
               "</span>";
    };
    const PlanCalibration none, &split = c.plan ? c.plan->calibration : none;
    parts.add({"calibration", countText(double(c.rows.calibration)), units(split.requests), "fits"});
    parts.add({"validation (last quarter of calibration)", countText(double(c.rows.validation)), "", "choices inside a fit"});
    parts.add({"held-out", countText(double(c.rows.heldOut)), units(split.heldOut), "every error on this page"});
    parts.add({"sealed", countText(double(c.rows.sealed)), units(split.sealed), "verify; statistics, which fit nothing"});
    html += "<h3>Rows, " + escaped(c.splitText) + "</h3>" + parts.html();
    if (c.plan) {
        HtmlTable hashes({"what the plan is bound to", "value"});
        hashes.add({"basis before", "<span class=\"hash\">" + escaped(c.plan->basisIn) + "</span>"});
        for (const auto &[part, hash] : split.rowsSha256)
            hashes.add({"rows of " + escaped(part), "<span class=\"hash\">" + escaped(hash) + "</span>"});
        hashes.add({"model", escaped(c.plan->source.model +
                                     (c.plan->source.modelRevision.empty() ? "" : ", " + c.plan->source.modelRevision))});
        hashes.add({"family", escaped(c.plan->source.family)});
        hashes.add({"made by", escaped("planish " + c.plan->toolVersion + ", backend " + c.plan->backend + ", " + c.plan->cpu)});
        html += hashes.html();
    }
    return {"provenance", "Provenance and split", html, "measured by us"};
}

HtmlSection mapSection(const ReportContent &c)
{
    std::set<std::int64_t> depth;
    std::vector<std::string> sites;
    for (const ReportEdge &edge : c.edges) {
        depth.insert(edge.layer);
        if (std::find(sites.begin(), sites.end(), edge.site) == sites.end())
            sites.push_back(edge.site);
    }
    if (c.edges.empty())
        return {};
    const std::vector<std::int64_t> layers(depth.begin(), depth.end());
    std::vector<std::string> columns;
    for (const std::int64_t layer : layers)
        columns.push_back(layer < 0 ? "–" : std::to_string(layer));
    const auto draw = [&](const std::string &measure, auto value) {
        std::vector<HeatCell> cells;
        for (const ReportEdge &edge : c.edges) {
            const auto column =
                static_cast<std::size_t>(std::lower_bound(layers.begin(), layers.end(), edge.layer) - layers.begin());
            const auto row = static_cast<std::size_t>(std::find(sites.begin(), sites.end(), edge.site) - sites.begin());
            const std::optional<double> number = value(edge);
            cells.push_back(
                {column, row, number, edge.edge.value + ": " + (number ? fullNumber(*number) : std::string("not defined"))});
        }
        return "<figure><figcaption>" + escaped(measure) + "</figcaption>" + heatMap(columns, sites, cells, measure) +
               "</figure>";
    };
    std::string html = draw("largest value over median", [](const ReportEdge &e) { return e.maxToMedian; });
    if (std::any_of(c.edges.begin(), c.edges.end(), [](const ReportEdge &e) { return e.relative.has_value(); }))
        html += draw("relative output error of the identity, " + c.specsText, [](const ReportEdge &e) { return e.relative; });
    if (!c.systematic.empty()) {
        HtmlTable table(
            {"systematic dimension", "layers", "share of layers", "share of positions", "share of positions in affected layers"});
        for (const SystematicDimension &d : c.systematic) {
            std::string where;
            for (const std::int64_t layer : d.layers)
                where += (where.empty() ? "" : ", ") + std::to_string(layer);
            table.add({std::to_string(d.channel), "<span class=\"say\">" + where + "</span>", percent(d.layerFraction),
                       percent(d.positionFractionAll), percent(d.positionFractionAffected)});
        }
        html += table.html();
    }
    return {"map", "Map", html, "measured by us"};
}

HtmlSection offenderSection(const ReportContent &c)
{
    std::vector<const ReportEdge *> edges;
    bool damage = false;
    for (const ReportEdge &edge : c.edges) {
        edges.push_back(&edge);
        damage = damage || edge.damage;
    }
    if (edges.empty())
        return {};
    std::ranges::stable_sort(edges, [&](const ReportEdge *a, const ReportEdge *b) {
        return damage ? a->damage.value_or(-1) > b->damage.value_or(-1)
                      : a->maxToMedian.value_or(-1) > b->maxToMedian.value_or(-1);
    });
    HtmlTable table({"edge", "damage ||E||", "relative error", "max |x|", "max / median", "at row, channel", "C top 1",
                     "C top 1 %", "mean incoherence", "rows × channels", "stored"},
                    damage ? "Sorted by the absolute damage of the identity under " + c.specsText + "; " +
                                 std::to_string(std::min(kOffenders, edges.size())) + " of " + std::to_string(edges.size()) +
                                 " edges"
                           : "Sorted by largest value over median: no weights, so no damage");
    for (std::size_t i = 0; i < edges.size() && i < kOffenders; ++i) {
        const ReportEdge &e = *edges[i];
        table.add({escaped(e.edge.value), numberCell(e.damage), numberCell(e.relative), numberCell(e.maxAbs),
                   numberCell(e.maxToMedian), std::to_string(e.argmaxRow) + ", " + std::to_string(e.argmaxChannel),
                   e.c1 ? percent(*e.c1) : "–", e.c1pct ? percent(*e.c1pct) : "–", numberCell(e.meanIncoherence),
                   countText(double(e.tokens)) + " × " + countText(double(e.channels)), escaped(e.dtype)});
    }
    return {"offenders", "Top offenders", table.html(), "measured by us"};
}

HtmlSection findingsSection(const ReportContent &c)
{
    HtmlTable table({"kind", "edge", "where", "value", "rule", "hurts sharing", "stability", "evidence"});
    std::map<std::string, std::size_t> shown, left;
    for (const ReportEdge &edge : c.edges) {
        for (const Finding &f : edge.findings) {
            if (++shown[f.kind] > kFindingsPerKind) {
                ++left[f.kind];
                continue;
            }
            table.add({escaped(f.kind), escaped(edge.edge.value), "<span class=\"say\">" + escaped(whereText(f)) + "</span>",
                       numberCell(f.value), "<span class=\"say\">" + escaped(f.rule.text) + "</span>", escaped(f.sharing),
                       f.stability ? percent(*f.stability) : "–", escaped(f.evidence)});
        }
    }
    if (table.empty())
        return {};
    std::string html = table.html();
    std::vector<std::string> more;
    for (const auto &[kind, count] : left)
        more.push_back(std::to_string(count) + " more of " + kind + ": in the embedded data and in `analyze`");
    html += sentenceList(more);
    html += "<p class=\"lead\">A finding is an observation: a rule matched. Only an intervention with a control group makes it "
            "functional evidence, and a cause is never written "
            "here. Stability is the share of 20 bootstrap draws in which it recurs.</p>";
    return {"findings", "Findings", html, "measured by us; thresholds source-reported"};
}

} // namespace planish
