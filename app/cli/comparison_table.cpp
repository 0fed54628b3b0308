#include "app/cli/comparison_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace planish::cli {

namespace {

using Cells = std::vector<std::string>;

std::string number(double value, const char *format = "%.4g")
{
    if (!std::isfinite(value))
        return "-";
    char text[40];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

/// Columns a terminal shows of UTF-8 text, near enough for alignment.
std::size_t widthOf(const std::string &text)
{
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// Rows under headings; the first two columns left, numbers right, the last as it is.
std::string table(const std::vector<Cells> &rows)
{
    std::vector<std::size_t> widths(rows.front().size());
    for (const Cells &row : rows) {
        for (std::size_t c = 0; c < row.size(); ++c)
            widths[c] = std::max(widths[c], widthOf(row[c]));
    }
    std::string text;
    for (const Cells &row : rows) {
        std::string line = " ";
        for (std::size_t c = 0; c < row.size(); ++c) {
            const std::string pad(c + 1 == row.size() ? 0 : widths[c] - widthOf(row[c]), ' ');
            line += " " + (c < 2 || c + 1 == row.size() ? row[c] + pad : pad + row[c]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + '\n';
    }
    return text;
}

Cells evaluationCells(const Evaluation &e, const std::string &tie, const std::string &note)
{
    return {tie,
            e.candidate,
            number(e.output->relativeFrobenius),
            e.uncertainty ? number(e.uncertainty->low) : "-",
            e.uncertainty ? number(e.uncertainty->high) : "-",
            number(e.output->rows.rms),
            number(e.output->rows.median),
            e.gain ? number(*e.gain) : "-",
            number(e.output->sqnrDb, "%.1f"),
            number(e.ledger.onlineFlopsPerToken, "%.0f"),
            number(e.ledger.weightBits),
            note};
}

std::string edgeTable(const EdgeComparison &edge)
{
    if (!edge.skipped.empty())
        return edge.edge.value + "\n  skipped: " + edge.skipped + "\n\n";
    std::string text = edge.edge.value;
    const Evaluation &identity = edge.evaluations.front();
    if (identity.uncertainty)
        text += ": " + std::to_string(identity.rows.heldOut) + " held-out rows, spread over " +
                std::to_string(identity.uncertainty->units) + " " + identity.uncertainty->unit + "s";
    text += '\n';
    std::vector<Cells> rows = {
        {"set", "candidate", "error", "low", "high", "rows rms", "median", "gain", "SQNR", "online", "bits", ""}};
    for (const RankEntry &entry : edge.ranking) {
        const bool front = std::find(edge.pareto.begin(), edge.pareto.end(), entry.index) != edge.pareto.end();
        const bool rowsTie = entry.reason.find("output energy") != std::string::npos;
        rows.push_back(
            evaluationCells(edge.evaluations[entry.index], std::to_string(entry.tie),
                            std::string(front ? "pareto" : "") + (front && rowsTie ? "; " : "") + (rowsTie ? entry.reason : "")));
    }
    text += table(rows);
    for (const Evaluation &e : edge.evaluations) {
        if (e.status != EvaluationStatus::Ok)
            text += "  " + std::string(e.status == EvaluationStatus::Refused ? "refused  " : "failed   ") + e.candidate + ": " +
                    e.reason + '\n';
    }
    if (identity.output && identity.output->tokenDominated)
        text += "  token-dominated: the largest 1 % of rows hold " + number(100 * identity.output->topRowsShare, "%.3g") +
                " % of the output energy; a lower error ranks only where rows rms agrees\n";
    return text + '\n';
}

} // namespace

std::string comparisonTable(const Comparison &comparison)
{
    std::string text;
    for (const EdgeComparison &edge : comparison.edges)
        text += edgeTable(edge);
    std::vector<Cells> rows = {{"totals", "candidate", "mean error", "geometric gain", "wins", "online", "bits", ""}};
    for (const CandidateTotal &total : comparison.totals)
        rows.push_back({"", total.name, number(total.meanRelative), number(total.geometricGain), std::to_string(total.wins),
                        number(total.onlineFlops, "%.0f"), number(total.weightBits), ""});
    return text + table(rows);
}

} // namespace planish::cli
