// Edge ids by glob: `*` any characters, dots included, `?` one; short forms "L28.down". cli.md.
#include <algorithm>
#include <array>
#include <set>

#include "core/graph/model_graph.h"
#include "core/io/nearest.h"

namespace planish {

namespace {

/// Linear in the text for one star and quadratic at worst: a hostile name cannot make it explode.
bool globMatches(std::string_view pattern, std::string_view text)
{
    std::size_t p = 0, t = 0, star = std::string_view::npos, retry = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            retry = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++retry;
        } else {
            return false;
        }
    }
    return pattern.substr(p).find_first_not_of('*') == std::string_view::npos;
}

/// "L28.down" -> "layers.28.mlp_down"; "L*.qkv" -> "layers.*.attn_in". Empty when the text is no short form.
std::string longForm(std::string_view text)
{
    constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kSites{{{"down", "mlp_down"},
                                                                                   {"up", "mlp_in"},
                                                                                   {"gate", "mlp_in"},
                                                                                   {"fc1", "mlp_in"},
                                                                                   {"fc2", "mlp_down"},
                                                                                   {"qkv", "attn_in"},
                                                                                   {"o", "attn_out"},
                                                                                   {"resid", "residual"}}};
    const std::size_t dot = text.find('.');
    if (dot == std::string_view::npos || dot < 2 || (text.front() != 'L' && text.front() != 'l'))
        return {};
    const std::string_view number = text.substr(1, dot - 1);
    if (number.find_first_not_of("0123456789*?") != std::string_view::npos)
        return {};
    std::string_view site = text.substr(dot + 1);
    for (const auto &[brief, whole] : kSites)
        if (site == brief)
            site = whole;
    return "layers." + std::string(number) + "." + std::string(site);
}

} // namespace

Expected<std::vector<EdgeId>> matchEdges(const ModelGraph &graph, const std::vector<std::string> &globs)
{
    std::set<std::string> wanted;
    std::vector<std::string> ids;
    for (const Edge &edge : graph.edges)
        ids.push_back(edge.id.value);
    for (const std::string &glob : globs) {
        const std::string whole = longForm(glob);
        bool any = false;
        for (const std::string &id : ids)
            if (globMatches(glob, id) || (!whole.empty() && globMatches(whole, id))) {
                wanted.insert(id);
                any = true;
            }
        if (!any)
            return usageError(glob, "no edge has this name", "nearest: " + nearestText(whole.empty() ? glob : whole, ids));
    }
    std::vector<EdgeId> matched;
    for (const std::string &id : ids)
        if (globs.empty() || wanted.count(id))
            matched.push_back({id});
    return matched;
}

} // namespace planish
