#include "core/transform/rewrite.h"

#include <algorithm>
#include <iterator>

namespace planish {

namespace {

/// Slots that act on the final X', W' and so end a chain.
std::string lastSlotOf(const Rewrite &rewrite)
{
    if (!rewrite.clips.empty())
        return "clips";
    if (rewrite.exceptions.has_value())
        return "exceptions";
    return rewrite.lowRank.has_value() ? "a low-rank branch" : "";
}

template <class Value> void append(std::vector<Value> &values, const std::vector<Value> &more)
{
    values.insert(values.end(), more.begin(), more.end());
}

Expected<std::optional<SpecPair>> commonSpecs(const Rewrite &first, const Rewrite &second)
{
    if (!first.specs || !second.specs)
        return first.specs ? first.specs : second.specs;
    if (*first.specs != *second.specs)
        return usageError("chain", "its members were fitted under different quantizers",
                          "expected one pair of specs, or --refit");
    return first.specs;
}

} // namespace

Expected<Rewrite> Rewrite::then(const Rewrite &next) const
{
    if (const std::string slot = lastSlotOf(*this); !slot.empty())
        return refusal("chain", "a member that leaves " + slot + " is not the last", "expected it at the end of the chain",
                       "must_be_last");
    const bool nextReplaces = std::ranges::any_of(next.replaced, [](const auto &weight) { return weight.has_value(); });
    if (nextReplaces && !(input.isIdentity() && !output && replaced.empty()))
        return refusal("chain", "a member that replaces weights is not the first", "expected it at the start of the chain",
                       "must_be_first");
    const auto specsOfBoth = commonSpecs(*this, next);
    if (!specsOfBoth)
        return tl::make_unexpected(specsOfBoth.error());

    Rewrite joined = *this;
    joined.input = input.then(next.input);
    if (next.output)
        joined.output = output ? output->then(*next.output) : next.output;
    if (nextReplaces)
        joined.replaced = next.replaced;
    joined.lowRank = next.lowRank;
    joined.exceptions = next.exceptions;
    joined.clips = next.clips;
    append(joined.otherReaders, next.otherReaders);
    joined.specs = *specsOfBoth;
    joined.fitted.insert(next.fitted.begin(), next.fitted.end());
    append(joined.log, next.log);
    if (next.training)
        joined.training = next.training;
    for (const auto &[name, count] : next.clamps)
        joined.clamps[name] += count;
    append(joined.notes, next.notes);
    joined.changesFunction = changesFunction || next.changesFunction;
    return joined;
}

} // namespace planish
