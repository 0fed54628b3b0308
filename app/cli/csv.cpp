#include "app/cli/csv.h"

#include <cstdio>

#include "core/io/atomic_file.h"

namespace planish::cli {

namespace {

std::string quoted(const std::string &text)
{
    if (text.find_first_of(",\"\n") == std::string::npos)
        return text;
    std::string out = "\"";
    for (char c : text)
        out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + '"';
}

std::string number(double value)
{
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
}

std::string_view statusText(EvaluationStatus status)
{
    return status == EvaluationStatus::Ok ? "ok" : status == EvaluationStatus::Refused ? "refused" : "failed";
}

constexpr const char *kHeader = "edge,name,chain,act,weight,status,reason,relative_frobenius,low,high,rows_rms,rows_median,token_dominated,tie,gain,"
                                "sqnr_db,online_flops,weight_bits,kappa,seconds\n";

std::string chainOf(const Evaluation &e)
{
    std::string text;
    for (const FittedMember &member : e.chain)
        text += (text.empty() ? "" : "+") + member.method;
    return text;
}

std::string line(const Evaluation &e, int tie)
{
    std::string out = quoted(e.edge.value) + ',' + quoted(e.candidate) + ',' + chainOf(e) + ',' + canonicalText(e.act, Role::Activation) + ',' +
                      canonicalText(e.weight, Role::Weight) + ',' + std::string(statusText(e.status)) + ',' + quoted(e.reason) + ',';
    out += (e.output ? number(e.output->relativeFrobenius) : "") + ',';
    out += (e.uncertainty ? number(e.uncertainty->low) : "") + ',' + (e.uncertainty ? number(e.uncertainty->high) : "") + ',';
    out += (e.output ? number(e.output->rows.rms) : "") + ',' + (e.output ? number(e.output->rows.median) : "") + ',';
    out += std::string(e.output ? (e.output->tokenDominated ? "true" : "false") : "") + ',' + (tie >= 0 ? std::to_string(tie) : "") + ',';
    out += (e.gain ? number(*e.gain) : "") + ',' + (e.output ? number(e.output->sqnrDb) : "") + ',';
    out += number(e.ledger.onlineFlopsPerToken) + ',' + number(e.ledger.weightBits) + ',';
    out += (e.conditioning ? number(e.conditioning->kappa) : "") + ',' + number(e.seconds) + '\n';
    return out;
}

} // namespace

Expected<void> writeEvaluationsCsv(const std::vector<Evaluation> &evaluations, const std::vector<int> &ties, const std::string &file)
{
    std::string text = kHeader;
    for (std::size_t i = 0; i < evaluations.size(); ++i)
        text += line(evaluations[i], i < ties.size() ? ties[i] : -1);
    return writeFileAtomically(file, text);
}

Expected<void> writeComparisonCsv(const Comparison &comparison, const std::string &file)
{
    std::string text = kHeader;
    for (const EdgeComparison &edge : comparison.edges) {
        std::vector<int> ties(edge.evaluations.size(), -1);
        for (const RankEntry &entry : edge.ranking)
            ties[entry.index] = entry.tie;
        for (std::size_t i = 0; i < edge.evaluations.size(); ++i)
            text += line(edge.evaluations[i], ties[i]);
    }
    return writeFileAtomically(file, text);
}

std::vector<Candidate> withAblations(const std::vector<Candidate> &candidates)
{
    std::vector<Candidate> all;
    for (const Candidate &candidate : candidates) {
        all.push_back(candidate);
        for (std::size_t skip = 0; candidate.chain.size() > 1 && skip < candidate.chain.size(); ++skip) {
            Candidate less = candidate;
            less.name = candidate.name + " without " + candidate.chain[skip].method;
            less.chain.erase(less.chain.begin() + std::ptrdiff_t(skip));
            all.push_back(less);
        }
    }
    return all;
}

} // namespace planish::cli
