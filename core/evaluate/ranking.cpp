// Order and tie sets of candidates, Pareto front and totals. evaluation.md 7 and 12.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/evaluate/compare.h"
#include "core/evaluate/output_block.h"

namespace planish {
namespace {

bool isRanked(const Evaluation &evaluation)
{
    return evaluation.status == EvaluationStatus::Ok && evaluation.output && evaluation.sums;
}

double rankedValue(const Evaluation &evaluation, RankBy by)
{
    return by == RankBy::Rows ? evaluation.output->rows.rms : evaluation.output->relativeFrobenius;
}

/// On an edge whose norm a few rows own, the pooled figure ranks only where the typical row agrees.
bool rowsDisagree(const Evaluation &better, const Evaluation &worse)
{
    const double pooled = better.output->relativeFrobenius - worse.output->relativeFrobenius;
    const double rows = better.output->rows.rms - worse.output->rows.rms;
    return (pooled < 0 && rows > 0) || (pooled > 0 && rows < 0);
}

std::string dominatedReason(const Evaluation &better, const Evaluation &worse)
{
    const std::size_t rows = better.sums->sums.rowReference.size();
    std::array<char, 256> text{};
    std::snprintf(text.data(), text.size(), "%zu of %zu rows hold %.3g %% of the output energy; by rows.rms %s is better: tied",
                  (rows + 99) / 100, rows, 100 * better.output->topRowsShare, worse.candidate.c_str());
    return text.data();
}

} // namespace

std::vector<RankEntry> rankEvaluations(const std::vector<Evaluation> &evaluations, RankBy by)
{
    std::vector<std::size_t> remaining;
    for (std::size_t i = 0; i < evaluations.size(); ++i)
        if (isRanked(evaluations[i]))
            remaining.push_back(i);
    std::ranges::stable_sort(remaining, [&](std::size_t a, std::size_t b) {
        return rankedValue(evaluations[a], by) < rankedValue(evaluations[b], by);
    });
    std::vector<RankEntry> ranking;
    for (int tie = 0; !remaining.empty(); ++tie) {
        const Evaluation &best = evaluations[remaining.front()];
        std::vector<std::size_t> later;
        for (std::size_t position = 0; position < remaining.size(); ++position) {
            const Evaluation &other = evaluations[remaining[position]];
            RankEntry entry{.name = other.candidate, .index = remaining[position], .tie = tie, .reason = {}};
            if (position > 0 && !pairedDifference(*best.sums, *other.sums, by).tied) {
                if (by != RankBy::Auto || !best.output->tokenDominated || !rowsDisagree(best, other)) {
                    later.push_back(remaining[position]);
                    continue;
                }
                entry.reason = dominatedReason(best, other);
            } else if (position > 0) {
                entry.reason = "the 95 % interval of the paired difference contains 0";
            }
            ranking.push_back(std::move(entry));
        }
        remaining = std::move(later);
    }
    return ranking;
}

std::vector<std::size_t> paretoOf(const std::vector<Evaluation> &evaluations)
{
    const auto point = [&](std::size_t i) {
        const Evaluation &e = evaluations[i];
        return std::array<double, 3>{e.output->relativeFrobenius, e.ledger.onlineFlopsPerToken, e.ledger.weightBits};
    };
    std::vector<std::size_t> front;
    for (std::size_t i = 0; i < evaluations.size(); ++i) {
        bool dominated = !isRanked(evaluations[i]);
        for (std::size_t j = 0; j < evaluations.size() && !dominated; ++j) {
            if (j == i || !isRanked(evaluations[j]))
                continue;
            const auto a = point(i), b = point(j);
            dominated = b[0] <= a[0] && b[1] <= a[1] && b[2] <= a[2] && b != a;
        }
        if (!dominated)
            front.push_back(i);
    }
    return front;
}

std::vector<CandidateTotal> totalsOf(const std::vector<Candidate> &candidates, const std::vector<EdgeComparison> &edges)
{
    std::vector<CandidateTotal> totals;
    for (const Candidate &candidate : candidates) {
        CandidateTotal total{.name = candidate.name};
        double relative = 0, logGain = 0, bits = 0;
        int scored = 0, gains = 0;
        for (const EdgeComparison &edge : edges) {
            const auto found = std::ranges::find_if(
                edge.evaluations, [&](const Evaluation &e) { return e.candidate == candidate.name && isRanked(e); });
            if (found == edge.evaluations.end())
                continue;
            ++scored;
            relative += found->output->relativeFrobenius;
            total.onlineFlops += found->ledger.onlineFlopsPerToken;
            bits += found->ledger.weightBits;
            if (found->gain && *found->gain > 0) {
                logGain += std::log(*found->gain);
                ++gains;
            }
            const auto index = static_cast<std::size_t>(found - edge.evaluations.begin());
            total.wins +=
                std::ranges::any_of(edge.ranking, [&](const RankEntry &entry) { return entry.index == index && entry.tie == 0; })
                    ? 1
                    : 0;
        }
        const double nothing = std::nan("");
        total.meanRelative = scored > 0 ? relative / scored : nothing;
        total.geometricGain = gains > 0 ? std::exp(logGain / gains) : nothing;
        total.weightBits = scored > 0 ? bits / scored : nothing;
        totals.push_back(std::move(total));
    }
    return totals;
}

} // namespace planish
