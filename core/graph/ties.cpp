#include "core/graph/ties.h"

#include <algorithm>
#include <cmath>

namespace planish {

namespace {

/// Sets numbered in order of first use; all channels alone is no tie at all.
Ties numbered(const std::string &key, const std::vector<std::int64_t> &raw)
{
    std::vector<std::int32_t> numberOf(raw.empty() ? 0 : static_cast<std::size_t>(*std::max_element(raw.begin(), raw.end())) + 1,
                                       -1);
    Ties ties;
    ties.key = key;
    for (const std::int64_t value : raw) {
        std::int32_t &number = numberOf[static_cast<std::size_t>(value)];
        if (number < 0)
            number = static_cast<std::int32_t>(ties.count++);
        ties.set.push_back(number);
    }
    return ties.count == raw.size() ? Ties{} : ties;
}

std::int64_t kvHeadsOf(const ModelInfo &model)
{
    return model.numKvHeads > 0 ? model.numKvHeads : model.numHeads;
}

} // namespace

std::vector<std::int64_t> gqaRowMap(std::int64_t heads, std::int64_t kvHeads, std::int64_t headDim)
{
    std::vector<std::int64_t> map;
    if (heads <= 0 || kvHeads <= 0 || headDim <= 0 || heads % kvHeads != 0)
        return map;
    const std::int64_t repeat = heads / kvHeads;
    for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t d = 0; d < headDim; ++d)
            map.push_back(h / repeat * headDim + d);
    return map;
}

std::vector<std::int64_t> ropePairs(std::int64_t headDim, std::int64_t rotary, bool interleaved)
{
    std::vector<std::int64_t> set(static_cast<std::size_t>(headDim));
    const std::int64_t half = rotary / 2;
    for (std::int64_t d = 0; d < headDim; ++d)
        set[static_cast<std::size_t>(d)] = d >= rotary ? d : (interleaved ? d / 2 : d % half);
    return set;
}

Ties tiesOf(const std::string &site, std::size_t channels, const ModelInfo &model, const std::string &ropeStyle,
            bool sharedByHeads)
{
    const std::int64_t headDim = model.headDim, kvHeads = kvHeadsOf(model);
    const auto width = static_cast<std::int64_t>(channels);
    if (headDim <= 0 || kvHeads <= 0 || width % headDim != 0)
        return {};
    const std::int64_t heads = width / headDim;
    if (site == "attn_out")
        return heads % kvHeads == 0 ? numbered("gqa", gqaRowMap(heads, kvHeads, headDim)) : Ties{};
    const bool query = site.starts_with("q_"), key = site.starts_with("k_");
    if (!query && !key)
        return {};
    const bool rope = ropeStyle == "half" || ropeStyle == "interleaved";
    const std::int64_t rotary = model.rotaryDim > 0 ? std::min(model.rotaryDim, headDim) : headDim;
    const std::vector<std::int64_t> pairs = ropePairs(headDim, rope ? rotary : 0, ropeStyle == "interleaved");
    const std::int64_t repeat = query && heads % kvHeads == 0 ? heads / kvHeads : 1; // q / s and k * s: one s per key head
    std::vector<std::int64_t> raw;
    for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t d = 0; d < headDim; ++d)
            raw.push_back((sharedByHeads ? 0 : h / repeat * headDim) + pairs[static_cast<std::size_t>(d)]);
    return numbered(rope ? "rope_pair" : "gqa", raw);
}

bool equalInSets(const Ties &ties, std::span<const double> values)
{
    if (ties.set.size() != values.size())
        return true;
    std::vector<double> first(ties.count);
    std::vector<bool> seen(ties.count);
    for (std::size_t k = 0; k < values.size(); ++k) {
        const auto set = static_cast<std::size_t>(ties.set[k]);
        if (!seen[set]) {
            seen[set] = true;
            first[set] = values[k];
        } else if (std::abs(values[k] - first[set]) > 1e-12 * std::max(std::abs(values[k]), std::abs(first[set]))) {
            return false;
        }
    }
    return true;
}

} // namespace planish
