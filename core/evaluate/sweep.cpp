#include "core/evaluate/sweep.h"

#include <array>
#include <charconv>
#include <cmath>

namespace planish {
namespace {

bool isWhole(double value)
{
    return std::isfinite(value) && value == std::floor(value);
}

Expected<QuantSpec> withBits(QuantSpec spec, const std::string &parameter, double value)
{
    if (!isInteger(spec.grid.format))
        return usageError(parameter, "the spec is not an integer format", "int2 … int8");
    if (!isWhole(value) || value < 2 || value > 8)
        return usageError(parameter, shortestText(value) + " bits", "whole numbers in 2..8");
    constexpr std::array kFormats = {NumberFormat::Int2, NumberFormat::Int3, NumberFormat::Int4, NumberFormat::Int5,
                                     NumberFormat::Int6, NumberFormat::Int7, NumberFormat::Int8};
    spec.grid.format = kFormats[static_cast<std::size_t>(value) - 2];
    return spec;
}

Expected<QuantSpec> withSpecValue(const QuantSpec &base, Role role, const std::string &parameter, double value)
{
    QuantSpec spec = base;
    const std::string what = parameter.substr(parameter.find('.') + 1);
    if (spec.isNone())
        return usageError(parameter, "the spec is none", "a quantizer to vary");
    if (what == "bits") {
        auto bits = withBits(spec, parameter, value);
        if (!bits)
            return bits;
        spec = *bits;
    } else if (what == "clip") {
        if (!(value > 0) || value > 1)
            return usageError(parameter, "a clip of " + shortestText(value), "numbers above 0 and at most 1");
        spec.grid.clip = value == 1 ? ClipRule{} : ClipRule{ClipKind::Fixed, value};
    } else {
        if (!isWhole(value) || value < 2)
            return usageError(parameter, "a group of " + shortestText(value), "whole numbers of at least 2");
        spec.grid.sharing = Sharing::Group;
        spec.grid.group = static_cast<std::size_t>(value);
    }
    return parseQuantSpec(canonicalText(spec, role), role); // the spec's own rules decide whether this exists
}

/// Sets a method parameter by bare, keyed or numbered name, replacing what the base has set.
Expected<Candidate> withMethodParameter(const Candidate &base, const std::string &parameter, double value)
{
    Candidate candidate = base;
    std::vector<std::string> sets;
    const std::size_t dot = parameter.find('.');
    const std::string name = dot == std::string::npos ? parameter : parameter.substr(dot + 1);
    auto target = parseChain(chainText(base.chain), {parameter + "=" + shortestText(value)});
    if (!target)
        return tl::make_unexpected(target.error());
    for (std::size_t i = 0; i < candidate.chain.size(); ++i) {
        if ((*target)[i].set.empty())
            continue;
        std::erase_if(candidate.chain[i].set, [&](const auto &item) { return item.first == name; });
        candidate.chain[i].set.insert(candidate.chain[i].set.end(), (*target)[i].set.begin(), (*target)[i].set.end());
    }
    return candidate;
}

} // namespace

std::string shortestText(double value)
{
    if (std::abs(value) < 1e15) { // grid points from + i step carry rounding dust: 0.35000000000000003 is meant as 0.35
        std::array<char, 40> rounded{};
        const auto done = std::to_chars(rounded.data(), rounded.data() + rounded.size(), value, std::chars_format::general, 12);
        std::from_chars(rounded.data(), done.ptr, value);
    }
    std::array<char, 40> text{};
    const auto done = std::to_chars(text.data(), text.data() + text.size(), value);
    return {text.data(), done.ptr};
}

Expected<Candidate> withParameter(const Candidate &base, const std::string &parameter, double value)
{
    Candidate candidate = base;
    candidate.name = base.name + " " + parameter + "=" + shortestText(value);
    if (parameter == "seed") {
        if (!isWhole(value) || value < 0)
            return usageError("seed", shortestText(value) + " is not a seed", "whole numbers of at least 0");
        candidate.seed = static_cast<std::uint64_t>(value);
        return candidate;
    }
    for (const char *what : {"bits", "clip", "group"}) {
        for (auto [side, role, slot] :
             {std::tuple{"act.", Role::Activation, &candidate.act}, std::tuple{"weight.", Role::Weight, &candidate.weight}}) {
            if (parameter != std::string(side) + what)
                continue;
            auto spec = withSpecValue(*slot, role, parameter, value);
            if (!spec)
                return tl::make_unexpected(spec.error());
            *slot = *spec;
            return candidate;
        }
    }
    auto changed = withMethodParameter(base, parameter, value);
    if (changed)
        changed->name = candidate.name;
    return changed;
}

} // namespace planish
