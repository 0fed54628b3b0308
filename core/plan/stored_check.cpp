#include "core/plan/stored_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>

#include "core/io/number_decode.h"
#include "core/plan/hashes.h"

namespace planish {

namespace {

/// Distance to the next number of the type at this magnitude.
double unitInLastPlace(double value, StoredType type)
{
    const double magnitude = std::abs(value);
    int digits = 53, lowest = -1074;
    if (type == StoredType::F16) {
        digits = 11;
        lowest = -24;
    } else if (type == StoredType::Bf16) {
        digits = 8;
        lowest = -133;
    } else if (type == StoredType::F32) {
        digits = 24;
        lowest = -149;
    }
    if (magnitude == 0)
        return std::ldexp(1.0, lowest);
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    return std::ldexp(1.0, std::max(exponent - digits, lowest));
}

struct Worst {
    std::size_t index = 0;
    double stored = 0, expected = 0, excess = 0; ///< excess: deviation over the tolerance
};

std::string deviationText(const Worst &worst, const std::vector<std::uint64_t> &shape)
{
    const std::size_t width = shape.size() > 1 ? shape.back() : 1;
    const char *what = shape.size() > 1 ? "row" : "channel";
    const double relative = worst.expected != 0 ? std::abs(worst.stored - worst.expected) / std::abs(worst.expected) : 1.0;
    char text[160];
    std::snprintf(text, sizeof text, "%s %zu deviates by %.3g %% (stored %.9g, expected %.9g)", what, worst.index / width, 100 * relative, worst.stored,
                  worst.expected);
    return text;
}

/// Producer tensors by dump name, each with the edge it belongs to.
std::map<std::string, std::string> producersOf(const Plan &plan, const ResolvedWeights &weights)
{
    std::map<std::string, std::string> producers;
    for (const Assignment &assignment : plan.assignments) {
        for (const FusedFactor &factor : assignment.placement.fused) {
            if (factor.how != FusedFactor::How::NormGain && factor.how != FusedFactor::How::ProducerRows)
                continue;
            const std::string name = canonicalRows(weights, {factor.tensor.value, factor.rows}).name;
            producers.emplace(name, assignment.edge.value);
            producers.emplace(name + ".bias", assignment.edge.value);
        }
    }
    return producers;
}

/// An edge a consumer tensor belongs to, for messages about a tensor that is gone.
std::string edgeOfConsumer(const Plan &plan, const std::string &name)
{
    for (const Assignment &assignment : plan.assignments) {
        for (const std::string &consumer : assignment.consumers) {
            if (consumer.substr(0, consumer.find('[')) == name || consumer.substr(0, consumer.find('[')) + ".bias" == name)
                return assignment.edge.value;
        }
    }
    return plan.assignments.empty() ? std::string() : plan.assignments.front().edge.value;
}

Expected<std::vector<double>> valuesOf(const Checkpoint &checkpoint, const StoredTensor &tensor)
{
    auto raw = checkpoint.readRaw(tensor);
    if (!raw)
        return tl::make_unexpected(raw.error());
    std::vector<double> values(byteSize(tensor.type) ? raw->size() / byteSize(tensor.type) : 0);
    widen(*raw, tensor.type, ByteOrder::Little, std::span<double>(values));
    return values;
}

/// One changed tensor against its exact fold; `tolerance` in units in the last place of OUT's type.
Expected<std::optional<Worst>> compareFolded(const FoldedCheckpoint &exact, const OutputTensor &tensor, const Checkpoint &out, const StoredTensor &stored)
{
    auto bytes = exact.bytesOf(tensor);
    if (!bytes)
        return tl::make_unexpected(bytes.error());
    std::vector<double> expected(tensor.elements());
    widen(*bytes, tensor.slot.type, ByteOrder::Little, std::span<double>(expected));
    auto values = valuesOf(out, stored);
    if (!values)
        return tl::make_unexpected(values.error());
    std::optional<Worst> worst;
    for (std::size_t i = 0; i < expected.size() && i < values->size(); ++i) {
        const double deviation = std::abs((*values)[i] - expected[i]);
        const double allowed = unitInLastPlace(expected[i], stored.type) * (stored.type == StoredType::F64 ? 4 : 1);
        const double excess = deviation / allowed;
        if (!(deviation <= allowed) && (!worst || !(excess <= worst->excess)))
            worst = Worst{i, (*values)[i], expected[i], excess};
    }
    return worst;
}

Expected<void> compareChanged(const Plan &plan, const ResolvedWeights &weights, const FoldedCheckpoint &exact, const Checkpoint &out, StoredCheck &check)
{
    const auto producers = producersOf(plan, weights);
    for (const OutputTensor &tensor : exact.tensors()) {
        if (tensor.source && !tensor.counted)
            continue;
        const StoredTensor *stored = out.info().find(tensor.slot.name);
        const std::string first = tensor.dumpNames.empty() ? tensor.slot.name : tensor.dumpNames.front();
        if (!stored || stored->shape != tensor.slot.shape || byteSize(stored->type) == 0) {
            if (tensor.dumpNames.empty())
                continue; // a bias of zeros beside a created one
            const auto owner = producers.find(first);
            check.byEdge.emplace(owner != producers.end() ? owner->second : edgeOfConsumer(plan, first),
                                 StoredDeviation{first, stored ? "has another shape" : "is missing"});
            continue;
        }
        const auto producer = std::find_if(tensor.dumpNames.begin(), tensor.dumpNames.end(), [&](const std::string &name) { return producers.contains(name); });
        if (producer == tensor.dumpNames.end())
            continue; // a consumer: its function is measured on rows
        auto worst = compareFolded(exact, tensor, out, *stored);
        if (!worst)
            return tl::make_unexpected(worst.error());
        if (*worst)
            check.byEdge.emplace(producers.at(*producer), StoredDeviation{*producer, deviationText(**worst, stored->shape)});
    }
    return {};
}

Expected<void> compareCopied(const FoldedCheckpoint &exact, const Checkpoint &in, const Checkpoint &out, StoredCheck &check)
{
    std::set<std::string> known;
    for (const OutputTensor &tensor : exact.tensors()) {
        known.insert(tensor.slot.name);
        if (!tensor.source || tensor.counted)
            continue;
        const StoredTensor *stored = out.info().find(tensor.slot.name);
        if (!stored || stored->type != tensor.source->type || stored->shape != tensor.source->shape) {
            check.changed.push_back(tensor.slot.name);
            continue;
        }
        auto before = in.readRaw(*tensor.source);
        if (!before)
            return tl::make_unexpected(before.error());
        auto after = out.readRaw(*stored);
        if (!after)
            return tl::make_unexpected(after.error());
        if (*before != *after)
            check.changed.push_back(tensor.slot.name);
    }
    for (const StoredTensor &tensor : out.info().tensors) {
        if (!known.contains(tensor.name))
            check.changed.push_back(tensor.name);
    }
    return {};
}

} // namespace

Expected<StoredCheck> checkStored(const Plan &plan, const FoldMap &map, const Checkpoint &transformed)
{
    StoredCheck check;
    // Folds kept in double: a unit in the last place is then counted from the exact value, not from our own rounding.
    auto exact = FoldedCheckpoint::build(map, StoreAs::F64);
    if (!exact)
        return tl::make_unexpected(exact.error());
    if (auto changed = compareChanged(plan, map.weights(), *exact, transformed, check); !changed)
        return tl::make_unexpected(changed.error());
    if (auto copied = compareCopied(*exact, *map.weights().checkpoint(), transformed, check); !copied)
        return tl::make_unexpected(copied.error());
    return check;
}

} // namespace planish
