#include "core/plan/choose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace planish {

namespace {

double errorOf(const Evaluation &evaluation)
{
    return evaluation.output ? evaluation.output->relativeFrobenius : std::numeric_limits<double>::infinity();
}

double flopsOf(const Evaluation &evaluation)
{
    return evaluation.ledger.onlineFlopsPerToken;
}

bool isIdentity(const Evaluation &evaluation)
{
    return evaluation.candidate == "none";
}

std::int64_t numbersOf(const Operator &op);

std::int64_t numbersOf(const std::vector<Operator> &operators)
{
    std::int64_t count = 0;
    for (const Operator &op : operators)
        count += numbersOf(op);
    return count;
}

std::int64_t numbersOf(const Operator &op)
{
    return std::visit(
        [](const auto &value) -> std::int64_t {
            using T = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<T, ScaleOp>)
                return static_cast<std::int64_t>(value.divisor.size());
            else if constexpr (std::is_same_v<T, PermuteOp>)
                return static_cast<std::int64_t>(value.perm.size());
            else if constexpr (std::is_same_v<T, HadamardOp>)
                return static_cast<std::int64_t>(value.signs.size());
            else if constexpr (std::is_same_v<T, BlockDenseOp>)
                return static_cast<std::int64_t>(value.blocks.size() * value.block * value.block);
            else if constexpr (std::is_same_v<T, KroneckerOp>)
                return numbersOf(*value.first) + numbersOf(*value.second);
            else if constexpr (std::is_same_v<T, DenseOp>)
                return static_cast<std::int64_t>(value.matrix.size());
            else
                return 0;
        },
        op.value);
}

std::vector<std::size_t> plannableOf(const EdgeChoice &choice)
{
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < choice.evaluations.size(); ++i) {
        if (choice.plannable[i])
            indices.push_back(i);
    }
    return indices;
}

/// Indices not dominated in (error, flops), ascending error.
std::vector<std::size_t> frontOf(const EdgeChoice &choice)
{
    std::vector<std::size_t> indices = plannableOf(choice);
    std::stable_sort(indices.begin(), indices.end(), [&](std::size_t a, std::size_t b) {
        const Evaluation &x = choice.evaluations[a], &y = choice.evaluations[b];
        return std::tuple(errorOf(x), flopsOf(x)) < std::tuple(errorOf(y), flopsOf(y));
    });
    std::vector<std::size_t> front;
    for (std::size_t index : indices) {
        if (front.empty() || flopsOf(choice.evaluations[index]) < flopsOf(choice.evaluations[front.back()]))
            front.push_back(index);
    }
    return front;
}

/// Sums over edges under the present choice.
struct Totals {
    double flops = 0, bits = 0, elements = 0;
    double meanBits() const { return elements > 0 ? bits / elements : 0; }
};

Totals totalsOf(const std::vector<EdgeChoice> &choices)
{
    Totals totals;
    for (const EdgeChoice &choice : choices) {
        const Evaluation &chosen = choice.evaluations[choice.chosen];
        const auto elements = static_cast<double>(choice.weightElements);
        totals.flops += flopsOf(chosen);
        totals.bits += chosen.ledger.weightBits * elements;
        totals.elements += elements;
    }
    return totals;
}

struct Change {
    std::size_t edge = 0, candidate = 0;
    double gain = 0, flops = 0, bits = 0;
};

bool fits(const Totals &now, const Change &change, const Budget &budget)
{
    if (budget.maxOnlineFlops && now.flops + change.flops > *budget.maxOnlineFlops && change.flops > 0)
        return false;
    if (!budget.maxWeightBits || now.elements == 0)
        return true;
    const double bits = (now.bits + change.bits) / now.elements;
    return bits <= *budget.maxWeightBits || (now.meanBits() > *budget.maxWeightBits && change.bits < 0);
}

/// Larger gain per added flop, then per added bit, then gain; a change that adds nothing has an infinite ratio.
bool better(const Change &a, const Change &b)
{
    auto ratio = [](double gain, double cost) { return cost > 0 ? gain / cost : std::numeric_limits<double>::infinity(); };
    const auto key = [&](const Change &c) { return std::tuple(ratio(c.gain, c.flops), ratio(c.gain, c.bits), c.gain); };
    return key(a) > key(b);
}

std::optional<Change> bestChange(const std::vector<EdgeChoice> &choices, const Totals &now, const Budget &budget)
{
    std::optional<Change> best;
    const bool repairing = budget.maxWeightBits && now.meanBits() > *budget.maxWeightBits;
    for (std::size_t e = 0; e < choices.size(); ++e) {
        if (choices[e].pinned)
            continue;
        const Evaluation &from = choices[e].evaluations[choices[e].chosen];
        for (std::size_t c : plannableOf(choices[e])) {
            const Evaluation &to = choices[e].evaluations[c];
            Change change{e, c, errorOf(from) * errorOf(from) - errorOf(to) * errorOf(to), flopsOf(to) - flopsOf(from),
                          (to.ledger.weightBits - from.ledger.weightBits) * static_cast<double>(choices[e].weightElements)};
            const bool wanted = repairing ? change.bits < 0 : change.gain > 0;
            if (wanted && fits(now, change, budget) && (!best || better(change, *best)))
                best = change;
        }
    }
    return best;
}

} // namespace

std::int64_t fittedNumbers(const Rewrite &rewrite)
{
    std::int64_t count = static_cast<std::int64_t>(rewrite.input.shift.size()) + numbersOf(rewrite.input.operators);
    if (rewrite.output)
        count += static_cast<std::int64_t>(rewrite.output->shift.size()) + numbersOf(rewrite.output->operators);
    for (const Clip &clip : rewrite.clips)
        count += static_cast<std::int64_t>(clip.lo.size() + clip.hi.size());
    if (rewrite.exceptions) {
        if (const auto *fixed = std::get_if<StaticExceptions>(&rewrite.exceptions->rule))
            count += static_cast<std::int64_t>(fixed->columns.size());
        else
            ++count;
    }
    if (rewrite.lowRank) {
        for (std::size_t i = 0; i < rewrite.lowRank->left.size(); ++i)
            count += static_cast<std::int64_t>(rewrite.lowRank->left[i].size() + rewrite.lowRank->right[i].size());
    }
    for (const auto &matrix : rewrite.replaced)
        count += matrix ? static_cast<std::int64_t>(matrix->size()) : 0;
    return count;
}

std::size_t chooseLowest(const EdgeChoice &choice, RankBy by)
{
    const std::vector<std::size_t> indices = plannableOf(choice);
    if (indices.empty())
        return choice.chosen;
    std::vector<Evaluation> evaluations;
    for (std::size_t index : indices)
        evaluations.push_back(choice.evaluations[index]);
    std::vector<std::size_t> first;
    for (const RankEntry &entry : rankEvaluations(evaluations, by)) {
        if (entry.tie == 0)
            first.push_back(indices[entry.index]);
    }
    if (first.empty())
        return indices.front();
    const auto key = [&](std::size_t index) {
        const Evaluation &e = choice.evaluations[index];
        return std::tuple(flopsOf(e), e.rewrite ? fittedNumbers(*e.rewrite) : 0, !isIdentity(e), errorOf(e), index);
    };
    return *std::min_element(first.begin(), first.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
}

std::size_t chooseKnee(const EdgeChoice &choice)
{
    const std::vector<std::size_t> front = frontOf(choice);
    if (front.empty())
        return choice.chosen;
    const Evaluation &low = choice.evaluations[front.front()], &high = choice.evaluations[front.back()];
    const double errorSpan = errorOf(high) - errorOf(low), flopSpan = flopsOf(low) - flopsOf(high);
    std::size_t best = front.front();
    double farthest = 0;
    for (std::size_t index : front) {
        const Evaluation &e = choice.evaluations[index];
        const double x = errorSpan > 0 ? (errorOf(e) - errorOf(low)) / errorSpan : 0;
        const double y = flopSpan > 0 ? (flopsOf(e) - flopsOf(high)) / flopSpan : 0;
        const double distance = std::abs(1.0 - x - y); // the chord joins (0, 1) and (1, 0)
        if (distance > farthest && front.size() > 2) {
            farthest = distance;
            best = index;
        }
    }
    return best;
}

Expected<void> chooseWithin(std::vector<EdgeChoice> &choices, const Budget &budget)
{
    // Every change lowers the sum of squares or the bits, so this ends; the bound only guards against rounding.
    std::size_t left = 1;
    for (const EdgeChoice &choice : choices)
        left += choice.evaluations.size() * choice.evaluations.size();
    for (; left > 0; --left) {
        const auto change = bestChange(choices, totalsOf(choices), budget);
        if (!change)
            break;
        choices[change->edge].chosen = change->candidate;
    }
    const Totals end = totalsOf(choices);
    if (budget.maxWeightBits && end.meanBits() > *budget.maxWeightBits)
        return dataError("--max-weight-bits", "no choice of candidates stays within it (best mean is " + std::to_string(end.meanBits()) + ")",
                         "expected a budget the candidates can meet");
    return {};
}

} // namespace planish
