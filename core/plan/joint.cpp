#include "core/plan/joint.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/evaluate/edge_data.h"
#include "core/names/name_pattern.h"
#include "core/plan/fold.h"

namespace planish {

namespace {

// plan.md "Joint evaluation".
constexpr double kWorse = 1.10;
// Errors of quantizers that change nothing are rounding noise and never compared.
constexpr double kNoise = 1e-9;

using Folds = std::vector<std::pair<std::string, RowFold>>;

Transform permutationsOf(const Transform &prefix)
{
    Transform out;
    for (const Operator &op : prefix.operators) {
        if (std::holds_alternative<PermuteOp>(op.value))
            out.operators.push_back(op);
    }
    return out;
}

bool meets(const NamedRows &consumer, const std::string &tensor, const RowRangeOf &rows)
{
    if (consumer.name != tensor)
        return false;
    const bool before = consumer.rows.end >= 0 && consumer.rows.end <= rows.begin;
    const bool behind = rows.end >= 0 && rows.end <= consumer.rows.begin;
    return !before && !behind;
}

/// The slots of a Rewrite that live on weight rows follow the folded rows.
Rewrite onFoldedRows(Rewrite rewrite, std::size_t consumer, const std::string &tensor, std::int64_t begin, std::size_t outputs,
                     const Folds &folds, const ModelInfo &model)
{
    auto fold = [&](MatrixD &matrix) { (void)foldRowsOf(tensor, begin, matrix, nullptr, folds, model); };
    if (consumer < rewrite.replaced.size() && rewrite.replaced[consumer])
        fold(*rewrite.replaced[consumer]);
    if (rewrite.lowRank && !rewrite.lowRank->stacked && consumer < rewrite.lowRank->left.size())
        fold(rewrite.lowRank->left[consumer]);
    for (Clip &clip : rewrite.clips) {
        if (clip.target != Target::Weight || clip.consumer != consumer || clip.kind == Clip::Kind::Multiplier)
            continue;
        for (std::vector<double> *bound : {&clip.lo, &clip.hi}) {
            if (bound->empty() || bound->size() % outputs != 0)
                continue; // one bound for the whole tensor has no row to follow
            MatrixD shares(outputs, bound->size() / outputs);
            std::copy(bound->begin(), bound->end(), shares.data());
            fold(shares);
            std::copy_n(shares.data(), bound->size(), bound->begin());
        }
    }
    return rewrite;
}

/// Weights of the edge with the rows other edges fold, and the Rewrite that goes with them.
Expected<std::shared_ptr<const EdgeData>> foldedData(const EdgeData &alone, const Folds &folds, const ModelInfo &model, Rewrite &rewrite)
{
    EdgeParts parts = alone.parts();
    for (std::size_t i = 0; i < parts.consumers.size(); ++i) {
        ConsumerWeights &consumer = parts.consumers[i];
        const NamedRows place = canonicalRows(*parts.weights, {consumer.consumer.tensor.value, consumer.consumer.rows});
        const std::string &tensor = place.name;
        const std::int64_t begin = place.rows.begin;
        MatrixD weight = *consumer.weight;
        MatrixD bias = consumer.bias ? *consumer.bias : MatrixD(1, weight.rows());
        if (auto folded = foldRowsOf(tensor, begin, weight, &bias, folds, model); !folded)
            return tl::make_unexpected(folded.error());
        rewrite = onFoldedRows(std::move(rewrite), i, tensor, begin, weight.rows(), folds, model);
        consumer.weight = std::make_shared<const MatrixD>(std::move(weight));
        const bool anyBias = std::any_of(bias.values().begin(), bias.values().end(), [](double value) { return value != 0; });
        if (consumer.bias || anyBias)
            consumer.bias = std::make_shared<const MatrixD>(std::move(bias));
    }
    auto product = makeProductRows(parts.backend, parts.edge.id.value, parts.heldOut.sharedX(), parts.heldOut.requests(), parts.calibration.sharedX(),
                                   parts.consumers);
    if (!product)
        return tl::make_unexpected(product.error());
    parts.heldOutProduct = std::move(*product);
    return std::make_shared<const EdgeData>(std::move(parts));
}

Expected<void> evaluateOne(const Opened &opened, const Edge &edge, Assignment &assignment, const Folds &folds, const EvaluateOptions &options,
                           std::shared_ptr<const Backend> backend, std::stop_token stop)
{
    auto data = loadEdgeData(opened, edge, options, backend, stop);
    if (!data)
        return tl::make_unexpected(data.error());
    Rewrite rewrite = assignment.rewrite ? *assignment.rewrite : Rewrite();
    auto folded = foldedData(**data, folds, opened.graph.model, rewrite);
    if (!folded)
        return tl::make_unexpected(folded.error());
    auto evaluation = evaluateRewrite(opened, **folded, assignment.candidate, rewrite, options, stop);
    if (!evaluation)
        return tl::make_unexpected(evaluation.error());
    if (!evaluation->output)
        return refusal(assignment.edge.value, "after all folds: " + evaluation->reason, "expected an edge that still evaluates", "joint_error");
    assignment.joint = evaluation->output;
    return {};
}

} // namespace

std::size_t channelsOf(const Transform &transform)
{
    if (!transform.operators.empty())
        return channelsOf(transform.operators.front());
    return transform.shift.size();
}

NamedRows namedRows(const std::string &text)
{
    NamedRows named;
    if (!splitRowRange(text, named.name, named.rows.begin, named.rows.end))
        named = {text, {}};
    return named;
}

NamedRows canonicalRows(const ResolvedWeights &weights, const NamedRows &named)
{
    const ResolvedTensor *part = weights.find({named.name});
    if (!part || part->inDump || part->rows.whole() || part->rows.stride > 0)
        return named;
    for (const auto &[name, other] : weights.tensors()) {
        if (other.inDump || other.checkpointName != part->checkpointName || !other.rows.whole() || other.tied)
            continue;
        const std::int64_t end = named.rows.end < 0 ? part->rows.end : part->rows.begin + named.rows.end;
        return {name, {part->rows.begin + named.rows.begin, end}};
    }
    return named;
}

std::vector<std::pair<std::string, RowFold>> producerFolds(const Assignment &assignment, const ResolvedWeights &weights)
{
    Folds folds;
    const Transform prefix = fusedPrefix(assignment);
    if (prefix.isIdentity())
        return folds;
    bool own = true; // the producer stands first; what follows it only takes permutations
    for (const FusedFactor &factor : assignment.placement.fused) {
        if (factor.how != FusedFactor::How::ProducerRows)
            continue;
        const Transform transform = own ? prefix : permutationsOf(prefix);
        const NamedRows place = canonicalRows(weights, {factor.tensor.value, factor.rows});
        if (!transform.isIdentity())
            folds.push_back({place.name, {&assignment, transform, place.rows}});
        own = false;
    }
    return folds;
}

Expected<void> foldRowsOf(const std::string &tensor, std::int64_t begin, MatrixD &weight, MatrixD *bias, const Folds &folds,
                          const ModelInfo &model)
{
    for (const auto &[name, fold] : folds) {
        if (name != tensor)
            continue;
        const auto first = static_cast<std::size_t>(std::max<std::int64_t>(fold.rows.begin - begin, 0));
        const std::size_t last = fold.rows.end < 0 ? weight.rows() : static_cast<std::size_t>(std::max<std::int64_t>(fold.rows.end - begin, 0));
        if (first >= weight.rows() || last > weight.rows() || last <= first)
            continue;
        const std::string subject = fold.from->edge.value;
        auto map = producerRowMap(channelsOf(fold.prefix), last - first, model, subject);
        if (!map)
            return tl::make_unexpected(map.error());
        MatrixD part(last - first, weight.cols()), partBias(1, last - first);
        for (std::size_t r = first; r < last; ++r) {
            std::copy(weight.row(r).begin(), weight.row(r).end(), part.row(r - first).begin());
            partBias(0, r - first) = bias ? (*bias)(0, r) : 0.0;
        }
        Transform prefix = fold.prefix;
        if (!bias)
            prefix.shift.clear();
        if (auto done = foldProducerRows(part, bias ? &partBias : nullptr, prefix, *map, subject); !done)
            return done;
        for (std::size_t r = first; r < last; ++r) {
            std::copy(part.row(r - first).begin(), part.row(r - first).end(), weight.row(r).begin());
            if (bias)
                (*bias)(0, r) = partBias(0, r - first);
        }
    }
    return {};
}

Expected<void> evaluateJointly(const Opened &opened, std::vector<Assignment> &assignments, const EvaluateOptions &options,
                               std::shared_ptr<const Backend> backend, std::stop_token stop, const ProgressSink &progress)
{
    Folds folds;
    for (const Assignment &assignment : assignments) {
        for (auto &fold : producerFolds(assignment, *opened.weights))
            folds.push_back(std::move(fold));
    }
    double done = 0;
    for (Assignment &assignment : assignments) {
        if (progress)
            progress({.stage = "joint", .done = done++, .total = static_cast<double>(assignments.size()), .unit = "edges"});
        const Edge *edge = opened.graph.find(assignment.edge);
        const bool touched = edge && std::any_of(folds.begin(), folds.end(), [&](const auto &fold) {
            return std::any_of(edge->consumers.begin(), edge->consumers.end(), [&](const Consumer &consumer) {
                return meets(canonicalRows(*opened.weights, {consumer.tensor.value, consumer.rows}), fold.first, fold.second.rows);
            });
        });
        if (!touched) {
            assignment.joint = assignment.alone;
            continue;
        }
        if (auto result = evaluateOne(opened, *edge, assignment, folds, options, backend, stop); !result)
            return result;
    }
    return {};
}

Expected<void> checkJoint(const std::vector<Assignment> &assignments, const std::string &subject)
{
    std::string worse;
    for (const Assignment &assignment : assignments) {
        if (!assignment.alone || !assignment.joint)
            continue;
        const double alone = assignment.alone->relativeFrobenius, joint = assignment.joint->relativeFrobenius;
        if (joint <= kWorse * alone + kNoise)
            continue;
        char numbers[80];
        std::snprintf(numbers, sizeof numbers, " (%.4g alone, %.4g after all folds)", alone, joint);
        worse += (worse.empty() ? "" : ", ") + assignment.edge.value + numbers;
    }
    if (worse.empty())
        return {};
    return refusal(subject, "folds of other edges make " + worse + " worse by more than 10 %",
                   "expected joint errors near the errors alone; pass --accept-joint to keep the plan", "joint_error");
}

} // namespace planish
