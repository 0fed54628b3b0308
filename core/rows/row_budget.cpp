#include <algorithm>
#include <map>
#include <numeric>

#include "core/rows/split.h"

namespace planish {

namespace {

/// Rows of each request by largest remainder, at least one; more requests than budget: one row each of evenly spaced requests.
std::vector<std::int64_t> sharesOf(const std::vector<std::int64_t> &sizes, std::int64_t total, std::int64_t budget)
{
    const auto count = static_cast<std::int64_t>(sizes.size());
    std::vector<std::int64_t> shares(sizes.size(), 0);
    if (count >= budget) {
        for (std::int64_t i = 0; i < budget; ++i)
            shares[static_cast<std::size_t>(i * count / budget)] = 1;
        return shares;
    }
    std::vector<std::int64_t> remainders(sizes.size()); // in units of 1 / total
    for (std::size_t r = 0; r < sizes.size(); ++r) {
        shares[r] = std::max<std::int64_t>(1, budget * sizes[r] / total);
        remainders[r] = budget * sizes[r] - shares[r] * total;
    }
    std::vector<std::size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
    std::int64_t left = budget - std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
    for (std::size_t i = 0; left > 0; ++i, --left)
        ++shares[order[i % order.size()]];
    // Requests raised to one row took it from the others: those with the smallest remainders give it back.
    for (std::size_t i = order.size(); left < 0; i = i == 1 ? order.size() : i - 1)
        if (std::int64_t &share = shares[order[i - 1]]; share > 1) {
            --share;
            ++left;
        }
    return shares;
}

} // namespace

std::vector<std::int64_t> withinBudget(const std::vector<std::int64_t> &rows, const TokenTable &tokens, const DumpEdge &edge,
                                       std::int64_t budget)
{
    const auto total = static_cast<std::int64_t>(rows.size());
    if (budget < 0 || total <= budget)
        return rows;
    std::map<std::int32_t, std::size_t> place;
    std::vector<std::vector<std::int64_t>> ofRequest;
    for (const std::int64_t row : rows) {
        const auto token = static_cast<std::size_t>(tokenOfRow(edge, row));
        const std::int32_t request = token < tokens.size() ? tokens.request[token] : 0;
        const auto [found, isNew] = place.emplace(request, ofRequest.size());
        if (isNew)
            ofRequest.emplace_back();
        ofRequest[found->second].push_back(row);
    }
    std::vector<std::int64_t> sizes;
    for (const auto &list : ofRequest)
        sizes.push_back(static_cast<std::int64_t>(list.size()));
    const std::vector<std::int64_t> shares = sharesOf(sizes, total, budget);
    std::vector<std::int64_t> chosen;
    for (std::size_t r = 0; r < ofRequest.size(); ++r)
        for (std::int64_t i = 0; i < shares[r]; ++i)
            chosen.push_back(ofRequest[r][static_cast<std::size_t>(i * sizes[r] / shares[r])]);
    std::ranges::sort(chosen);
    return chosen;
}

} // namespace planish
