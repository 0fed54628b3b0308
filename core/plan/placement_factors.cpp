#include <algorithm>

#include "core/names/name_pattern.h"
#include "core/plan/manifest.h"

namespace planish {

namespace {

FusedFactor factorOf(FusedFactor::How how, const std::string &text)
{
    FusedFactor factor;
    factor.how = how;
    std::string name;
    std::int64_t begin = 0, end = -1;
    if (splitRowRange(text, name, begin, end)) {
        factor.tensor.value = name;
        factor.rows = {begin, end};
    } else {
        factor.tensor.value = text;
    }
    return factor;
}

std::string bareName(const std::string &text)
{
    return text.substr(0, text.find('['));
}

/// Names in fused_into that are neither the producer nor a consumer: gate rows that follow a permutation.
std::vector<std::string> followers(const Assignment &assignment)
{
    std::vector<std::string> names;
    for (const std::string &name : assignment.placement.fusedInto) {
        const bool consumer = std::any_of(assignment.consumers.begin(), assignment.consumers.end(),
                                          [&](const std::string &each) { return bareName(each) == bareName(name) || each.ends_with("." + name); });
        if (!consumer && bareName(name) != bareName(assignment.producerName) && name != assignment.producerName + ".weight")
            names.push_back(name);
    }
    return names;
}

} // namespace

void completePlacement(Assignment &assignment)
{
    Placement &placement = assignment.placement;
    const Transform &input = assignment.rewrite->input;
    placement.online.assign(input.operators.begin() + static_cast<std::ptrdiff_t>(std::min(placement.fusedOperators, input.operators.size())),
                            input.operators.end());
    placement.fused.clear();
    const bool norm = assignment.producerKind == "rmsnorm" || assignment.producerKind == "layernorm";
    const bool known = !assignment.producerName.empty() && assignment.producerKind != "unknown" && assignment.producerKind != "stream";
    if (known && (placement.fusedOperators > 0 || placement.shiftFused)) {
        placement.fused.push_back(factorOf(norm ? FusedFactor::How::NormGain : FusedFactor::How::ProducerRows, assignment.producerName));
        const bool permutes = std::any_of(input.operators.begin(), input.operators.begin() + static_cast<std::ptrdiff_t>(placement.fusedOperators),
                                          [](const Operator &op) { return std::holds_alternative<PermuteOp>(op.value); });
        if (!norm && permutes) {
            for (const std::string &name : followers(assignment))
                placement.fused.push_back(factorOf(FusedFactor::How::ProducerRows, name));
        }
    }
    for (const std::string &consumer : assignment.consumers) {
        if (!input.isIdentity())
            placement.fused.push_back(factorOf(FusedFactor::How::ConsumerColumns, consumer));
        if (!input.shift.empty())
            placement.fused.push_back(factorOf(FusedFactor::How::ConsumerBias, consumer));
    }
}

} // namespace planish
