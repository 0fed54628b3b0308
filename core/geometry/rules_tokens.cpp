// Rules about rows: rare_token, duplicate_rows.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "core/geometry/finding_rules.h"

namespace planish {

namespace {

// Duplicates are counted by their sums and the first is verified on the stored values.
using RowSums = std::tuple<double, double, std::uint32_t>;

// Lower median of the row maxima of a draw; `order` sorts the rows by maximum.
double medianRowMaximum(const RuleContext &context, std::size_t draw, const std::vector<std::size_t> &order)
{
    const Statistics &s = context.statistics;
    const std::uint64_t total = context.draws.rows(draw);
    std::uint64_t rank = total > 0 ? (total - 1) / 2 : 0;
    for (std::size_t r : order) {
        const std::uint64_t weight = context.draws.weight(draw, static_cast<std::size_t>(s.rowUnit[r]));
        if (rank < weight)
            return s.token.maxAbs[r];
        rank -= weight;
    }
    return 0.0;
}

void addToken(const RuleContext &context, std::int64_t row, nlohmann::json &where)
{
    const TokenTable &tokens = context.opened.dump->info().tokens;
    const auto token = static_cast<std::size_t>(tokenOfRow(context.dumpEdge, row));
    if (token >= tokens.size())
        return;
    where["request"] = tokens.request[token];
    where["position"] = token < tokens.position.size() ? tokens.position[token] : static_cast<std::int32_t>(token);
    if (token < tokens.text.size())
        where["text"] = tokens.text[token];
}

} // namespace

Expected<Findings> rareToken(const RuleContext &context)
{
    const Statistics &s = context.statistics;
    const double ratio = context.thresholds("rare_token.ratio");
    const double median = lowerMedian(s.token.maxAbs);
    if (!(median > 0.0))
        return Findings{};
    const FindingRule rule{"row maximum >= " + plainNumber(ratio) + " x the median of row maxima", "row_max_to_median", ">=", "",
                           ratio};
    Findings findings;
    std::vector<double> medianIn(context.draws.size());
    for (std::size_t r = 0; r < s.token.row.size(); ++r) {
        if (s.token.maxAbs[r] < ratio * median)
            continue;
        if (findings.empty() && !medianIn.empty()) {
            std::vector<std::size_t> order(s.token.row.size());
            std::iota(order.begin(), order.end(), std::size_t{0});
            std::stable_sort(order.begin(), order.end(),
                             [&](std::size_t a, std::size_t b) { return s.token.maxAbs[a] < s.token.maxAbs[b]; });
            for (std::size_t draw = 0; draw < medianIn.size(); ++draw)
                medianIn[draw] = medianRowMaximum(context, draw, order);
        }
        Finding finding = findingOn(context, "rare_token", rule, {s.token.row[r]}, s.token.maxAbs[r] / median);
        finding.where["row"] = s.token.row[r];
        addToken(context, s.token.row[r], finding.where);
        finding.sharing = "tensor";
        finding.stability = context.draws.share([&](std::size_t draw) {
            return context.draws.hasRow(draw, r) && medianIn[draw] > 0.0 && s.token.maxAbs[r] >= ratio * medianIn[draw];
        });
        findings.push_back(std::move(finding));
    }
    return findings;
}

Expected<Findings> duplicateRows(const RuleContext &context)
{
    const Statistics &s = context.statistics;
    std::map<RowSums, std::size_t> seen;
    std::size_t repeats = 0, first = 0, original = 0;
    for (std::size_t r = 0; r < s.token.row.size(); ++r) {
        if (s.token.maxAbs[r] == 0.0)
            continue;
        const auto [at, fresh] = seen.emplace(RowSums{s.token.maxAbs[r], s.token.energy[r], s.token.overTau[r]}, r);
        if (fresh)
            continue;
        if (repeats == 0) {
            const std::int64_t pair[] = {s.token.row[at->second], s.token.row[r]};
            auto values = context.opened.dump->readRows(context.dumpEdge, pair);
            if (!values)
                return tl::make_unexpected(values.error());
            if (!std::ranges::equal(values->row(0), values->row(1)))
                continue;
            first = r;
            original = at->second;
        }
        ++repeats;
    }
    if (repeats == 0)
        return Findings{};
    const FindingRule rule{"rows that repeat an earlier row > 0", "duplicate_rows", ">", "", 0.0};
    Finding finding = findingOn(context, "duplicate_rows", rule, {s.token.row[first]}, static_cast<double>(repeats));
    finding.where = {{"row", s.token.row[first]}, {"of", s.token.row[original]}};
    finding.sharing = "";
    finding.stability = context.draws.share(
        [&](std::size_t draw) { return context.draws.hasRow(draw, first) && context.draws.hasRow(draw, original); });
    return Findings{finding};
}

} // namespace planish
