#include "core/io/nearest.h"

#include <algorithm>
#include <numeric>

namespace planish {

namespace {

/// Levenshtein distance over bytes; long names are compared by their first 256 bytes.
std::size_t editDistance(std::string_view a, std::string_view b)
{
    constexpr std::size_t kCompared = 256;
    a = a.substr(0, kCompared);
    b = b.substr(0, kCompared);
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

} // namespace

std::vector<std::string> nearestNames(std::string_view wanted, const std::vector<std::string> &names, std::size_t count)
{
    std::vector<std::pair<std::size_t, std::size_t>> order;
    order.reserve(names.size());
    for (std::size_t i = 0; i < names.size(); ++i)
        order.emplace_back(editDistance(wanted, names[i]), i);
    std::sort(order.begin(), order.end());
    std::vector<std::string> nearest;
    for (std::size_t i = 0; i < order.size() && nearest.size() < count; ++i)
        nearest.push_back(names[order[i].second]);
    return nearest;
}

std::string nearestText(std::string_view wanted, const std::vector<std::string> &names, std::size_t count)
{
    const std::vector<std::string> nearest = nearestNames(wanted, names, count);
    std::string text;
    for (std::size_t i = 0; i < nearest.size(); ++i) {
        if (i > 0)
            text += i + 1 == nearest.size() ? " or " : ", ";
        text += nearest[i];
    }
    return text;
}

} // namespace planish
