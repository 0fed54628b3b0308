#include "core/graph/legality.h"

#include <algorithm>
#include <cmath>

#include "core/graph/edge_names.h"

namespace planish {

namespace {

struct ReaderRule {
    const char *kind, *rule, *text;
};
constexpr ReaderRule kReaderRules[] = {
    {"residual", "residual_reader", "residual reads this edge too: the norm output is also the shortcut of a post-norm block"},
    {"router", "router_not_covered", "the router "},
    {"parallel_branch", "parallel_branch_not_covered", "the parallel branch "},
    {"shared_expert", "consumers_not_covered", "the shared expert "},
    {"gate", "consumers_not_covered", "the gate "},
    {"expert", "consumers_not_covered", "the expert "},
    {"linear", "consumers_not_covered", "the linear "},
};

bool coveredBy(const OtherReader &reader, const Rewrite &rewrite)
{
    const auto entry = [&](auto wanted) {
        return std::any_of(rewrite.otherReaders.begin(), rewrite.otherReaders.end(), [&](const OtherReaderRewrite &other) {
            return (other.reader == reader.name || other.reader == reader.kind) && wanted(other);
        });
    };
    const bool scales = !rewrite.input.operators.empty();
    const bool shifts = !rewrite.input.shift.empty();
    return (!scales || entry([](const OtherReaderRewrite &other) { return !other.multiply.empty(); })) &&
           (!shifts || entry([](const OtherReaderRewrite &other) { return !other.addToBias.empty(); }));
}

std::optional<std::size_t> firstBadFactor(const Rewrite &rewrite)
{
    for (const Operator &op : rewrite.input.operators)
        if (const auto *scale = std::get_if<ScaleOp>(&op.value))
            for (std::size_t k = 0; k < scale->divisor.size(); ++k)
                if (!std::isfinite(scale->divisor[k]) || scale->divisor[k] == 0.0)
                    return k;
    for (std::size_t k = 0; k < rewrite.input.shift.size(); ++k)
        if (!std::isfinite(rewrite.input.shift[k]))
            return k;
    return std::nullopt;
}

} // namespace

Refusal refusalOf(const Edge &edge, std::string rule, std::string other, const std::string &text, Refusal::Severity severity)
{
    Refusal refusal;
    refusal.sentence = edge.id.value + ": " + text + " (" + rule + ")";
    refusal.rule = std::move(rule);
    refusal.other = std::move(other);
    refusal.severity = severity;
    return refusal;
}

std::vector<Refusal> faultsOf(const Edge &edge, const Rewrite &rewrite, const PlacementContext &)
{
    constexpr auto kError = Refusal::Severity::Error;
    std::vector<Refusal> faults;
    if (const auto channel = firstBadFactor(rewrite))
        faults.push_back(refusalOf(edge, "non_finite_factor", "channel " + std::to_string(*channel),
                                   "the factor of channel " + std::to_string(*channel) + " is 0 or not finite", kError));
    for (const Consumer &consumer : edge.consumers)
        if (!consumer.present)
            faults.push_back(refusalOf(edge, "consumers_missing", consumer.tensor.value,
                                       "consumer " + consumer.tensor.value + " has no weights", kError));
    return faults;
}

std::vector<Refusal> readersLeft(const Edge &edge, const Rewrite &rewrite)
{
    std::vector<Refusal> left;
    for (const OtherReader &reader : edge.otherReaders) {
        if (coveredBy(reader, rewrite))
            continue;
        const auto *rule = std::find_if(std::begin(kReaderRules), std::end(kReaderRules),
                                        [&](const ReaderRule &each) { return reader.kind == each.kind; });
        if (rule == std::end(kReaderRules))
            rule = std::end(kReaderRules) - 1;
        const bool shortcut = reader.kind == "residual";
        left.push_back(refusalOf(edge, rule->rule, reader.name,
                                 shortcut ? std::string(rule->text) : rule->text + reader.name + " also reads this edge"));
    }
    return left;
}

std::optional<Refusal> wrongProducer(const Edge &edge, const PlacementContext &context)
{
    const std::string named = nameOf(edge.producer);
    const bool stated = !named.empty() && !std::holds_alternative<UnknownProducer>(edge.producer) &&
                        !std::holds_alternative<StreamProducer>(edge.producer);
    if (!context.family || !stated)
        return std::nullopt;
    const EdgePlace place = placeOfEdge(edge.id.value, edge.layer, edge.site, context.family);
    // Variants that depend on the files may hold; the one of the norm order is known from the model.
    const bool postNorm = context.model && context.model->postNorm;
    std::vector<const FamilyEdge *> possible;
    const auto base = context.family->edges.find(place.key);
    bool replaced = false;
    for (const FamilyVariant &variant : context.family->variants) {
        const auto found = variant.edges.find(place.key);
        if (found == variant.edges.end() || (variant.when == "post_norm" && !postNorm))
            continue;
        possible.push_back(&found->second);
        replaced = replaced || variant.when == "post_norm";
    }
    if (base != context.family->edges.end() && !replaced)
        possible.push_back(&base->second);
    if (possible.empty())
        return std::nullopt;
    for (const FamilyEdge *each : possible)
        if (each->producer.empty() || fillPattern(each->producer, place.numbers) == named)
            return std::nullopt;
    const std::string right = fillPattern(possible.back()->producer, place.numbers);
    return refusalOf(edge, "wrong_producer", named, named + " is not the producer of this edge, " + right + " is");
}

} // namespace planish
