#include "core/evaluate/evaluate.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/evaluate/fit_chain.h"
#include "core/evaluate/jackknife.h"
#include "core/evaluate/ledger.h"
#include "core/evaluate/output_block.h"
#include "core/evaluate/rewrite_gate.h"
#include "core/evaluate/sweep.h"
#include "core/methods/kernel_result.h"

namespace planish {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start)
{
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Errors that belong to the caller; the others describe the candidate.
bool isCallers(const Error &error)
{
    return error.code == ErrorCode::Usage || error.code == ErrorCode::Cancelled || error.code == ErrorCode::Machine;
}

Evaluation blank(const EdgeData &data, const Candidate &candidate, const EvaluateOptions &options)
{
    const EdgeParts &parts = data.parts();
    Evaluation evaluation;
    evaluation.file = parts.dump->info().file;
    evaluation.edge = parts.edge.id;
    evaluation.consumers = parts.consumerNames;
    evaluation.candidate = candidate.name.empty() ? chainText(candidate.chain) : candidate.name;
    evaluation.seed = candidate.seed;
    evaluation.act = candidate.act;
    evaluation.weight = candidate.weight;
    evaluation.kv = candidate.kv;
    evaluation.backend = parts.backend->info().key;
    evaluation.splitUnit = parts.split.unit == SplitUnit::Explicit ? "explicit"
                           : parts.split.unit == SplitUnit::Block  ? "block"
                                                                   : "request";
    evaluation.splitSeed = parts.split.seed;
    evaluation.inSample = parts.split.inSample;
    evaluation.partial = !parts.missing.empty();
    evaluation.consumersMissing = parts.missing;
    evaluation.rows = parts.counts;
    evaluation.preview = options.preview;
    evaluation.selectedOn = candidate.selectedOn;
    const bool perChannel = !candidate.act.isNone() && candidate.act.grid.sharing == Sharing::Channel;
    evaluation.analysisOnly = perChannel || parts.split.unit == SplitUnit::Explicit;
    evaluation.notes = parts.split.notes;
    evaluation.notes.insert(evaluation.notes.end(), parts.notes.begin(), parts.notes.end());
    if (perChannel)
        evaluation.notes.push_back(
            "activations at channel sharing are analysis only: the step sits inside the sum over channels");
    return evaluation;
}

Evaluation stopped(Evaluation evaluation, EvaluationStatus status, const Error &error)
{
    evaluation.status = status;
    evaluation.reason = toText(error);
    evaluation.rule = error.rule;
    return evaluation;
}

ExceptionReport exceptionReport(const ResolvedExceptions &resolved, const Exceptions &exceptions, std::size_t channels)
{
    ExceptionReport report;
    const bool dynamic = std::holds_alternative<DynamicExceptions>(exceptions.rule);
    double columns = 0;
    for (std::size_t unit = 0; unit < resolved.unitColumns.size(); ++unit) {
        std::vector<std::int64_t> list;
        for (std::size_t k = 0; k < channels; ++k)
            if (resolved.unitColumns[unit][k])
                list.push_back(static_cast<std::int64_t>(k));
        columns += static_cast<double>(list.size());
        if (dynamic)
            report.perRequest.emplace_back(resolved.unitIds[unit], std::move(list));
        else
            report.columns = std::move(list);
    }
    report.share = columns / static_cast<double>(resolved.unitColumns.size()) / static_cast<double>(channels);
    return report;
}

/// A static set misses columns only the scored rows raise: both numbers side by side (evaluation.md 9).
void noteMissedColumns(Evaluation &evaluation, const Rewrite &rewrite, const MatrixD &xPrime)
{
    const auto threshold = rewrite.fitted.find("threshold");
    if (!rewrite.exceptions || !std::holds_alternative<StaticExceptions>(rewrite.exceptions->rule) ||
        threshold == rewrite.fitted.end())
        return;
    const auto &fixed = std::get<StaticExceptions>(rewrite.exceptions->rule).columns;
    const double limit = std::get<double>(threshold->second);
    std::size_t missed = 0, all = 0;
    for (std::size_t k = 0; k < xPrime.cols(); ++k) {
        bool over = false;
        for (std::size_t m = 0; m < xPrime.rows() && !over; ++m)
            over = std::abs(xPrime(m, k)) >= limit;
        all += over ? 1 : 0;
        missed += over && std::ranges::find(fixed, static_cast<std::int64_t>(k)) == fixed.end() ? 1 : 0;
    }
    if (missed > 0)
        evaluation.notes.push_back(
            std::to_string(missed) + " of the " + std::to_string(all) + " columns at or above " + shortestText(limit) +
            " in these rows were not seen in calibration (static set: " + std::to_string(fixed.size()) + ")");
}

GeometryAfter geometryOf(const MatrixD &xPrime)
{
    const Statistics statistics = statisticsOf(xPrime.view());
    GeometryAfter geometry;
    geometry.maxAbs = statistics.maxAbs;
    geometry.zeroMedian = statistics.medianAbs == 0;
    geometry.maxToMedian = statistics.maxToMedian().value_or(0);
    geometry.meanIncoherence = statistics.meanIncoherence().value_or(0);
    geometry.channelMaxAbs = statistics.channel.maxAbs;
    return geometry;
}

void addClamp(Evaluation &evaluation, const std::string &name, std::size_t count)
{
    if (count > 0)
        evaluation.clamps[name] += static_cast<std::int64_t>(count);
}

void addMeasured(Evaluation &evaluation, const EdgeParts &parts, ProductError product)
{
    auto sums = std::make_shared<ErrorSums>();
    sums->fileRows = parts.heldOut.rows();
    sums->rowUnits = parts.heldOut.units();
    sums->rowRequests = parts.heldOut.requests();
    sums->sums = std::move(product.sums);
    sums->consumerOutputs = std::move(product.consumerOutputs);
    evaluation.output = outputBlock(*sums, parts.consumerNames, parts.dump->info().tokens, parts.dumpEdge);
    evaluation.terms = errorTerms(*sums);
    evaluation.uncertainty = uncertaintyOf(*sums);
    evaluation.activation = tensorErrorOf(product.activation);
    evaluation.weightError = tensorErrorOf(product.weight);
    addClamp(evaluation, "scale_underflow", product.activation.scaleUnderflow + product.weight.scaleUnderflow);
    addClamp(evaluation, "zero_shares", product.activation.degenerateShares + product.weight.degenerateShares);
    evaluation.sums = std::move(sums);
}

Expected<void> addGeometry(Evaluation &evaluation, const EdgeParts &parts, const Rewrite &rewrite, const ResidentPtr &xPrime)
{
    auto x = fromKernel(parts.backend->download(*xPrime), parts.edge.id.value);
    if (!x)
        return tl::make_unexpected(x.error());
    evaluation.geometryAfter = geometryOf(*x);
    noteMissedColumns(evaluation, rewrite, *x);
    return {};
}

void addPlacement(Evaluation &evaluation, const Opened &opened, const EdgeParts &parts, const EvaluateOptions &options)
{
    PlacementContext context;
    context.family = opened.graph.family.get();
    context.model = &opened.graph.model;
    context.tensorParallel = options.tensorParallel;
    context.target = options.target;
    auto placement = std::make_shared<Placement>(place(parts.edge, *evaluation.rewrite, context));
    LedgerShape shape{
        .channels = parts.edge.channels, .outputs = {}, .tokens = static_cast<double>(options.ledger.prefillTokens)};
    for (const ConsumerWeights &consumer : parts.consumers)
        shape.outputs.push_back(consumer.weight->rows());
    if (evaluation.exceptions)
        shape.exceptionColumns = evaluation.exceptions->share * static_cast<double>(parts.edge.channels);
    evaluation.ledger = ledgerOf(*evaluation.rewrite, *placement, evaluation.weight, shape);
    evaluation.placement = std::move(placement);
}

void addGain(Evaluation &evaluation, const Expected<double> &identity)
{
    if (!identity)
        evaluation.notes.push_back("gain: " + toText(identity.error()));
    else if (evaluation.output->relativeFrobenius > 0)
        evaluation.gain = *identity / evaluation.output->relativeFrobenius;
}

/// Everything behind the fit, in the order of evaluation.md 6.
Expected<Evaluation> measured(const Opened &opened, const EdgeData &data, Evaluation evaluation, const EvaluateOptions &options,
                              std::stop_token stop)
{
    const EdgeParts &parts = data.parts();
    const Rewrite &rewrite = *evaluation.rewrite;
    evaluation.clamps = rewrite.clamps;
    evaluation.searchLog = rewrite.log;
    evaluation.training = rewrite.training;
    evaluation.notes.insert(evaluation.notes.end(), rewrite.notes.begin(), rewrite.notes.end());
    if (auto gate = passGate(opened, data, evaluation); !gate) {
        if (isCallers(gate.error()))
            return tl::make_unexpected(gate.error());
        const bool refused = gate.error().code == ErrorCode::Refused && gate.error().rule != "equivalence_failed";
        return stopped(std::move(evaluation), refused ? EvaluationStatus::Refused : EvaluationStatus::Failed, gate.error());
    }
    const SpecPair specs{evaluation.act, evaluation.weight, evaluation.kv};
    auto product = measureProduct(parts.heldOutProduct, rewrite, specs, TermDetail::All, stop);
    if (!product) {
        if (isCallers(product.error()))
            return tl::make_unexpected(product.error());
        return stopped(std::move(evaluation), EvaluationStatus::Failed, product.error());
    }
    if (product->exceptions)
        evaluation.exceptions = exceptionReport(*product->exceptions, *rewrite.exceptions, parts.edge.channels);
    const ResidentPtr xPrime = product->xPrime;
    addMeasured(evaluation, parts, std::move(*product));
    if (!std::isfinite(evaluation.output->relativeFrobenius)) {
        evaluation.output.reset();
        return stopped(
            std::move(evaluation), EvaluationStatus::Failed,
            Error{ErrorCode::Data, parts.edge.id.value, "the output error is not finite", "finite rows and Y other than 0", {}});
    }
    if (auto added = addGeometry(evaluation, parts, rewrite, xPrime); !added)
        return tl::make_unexpected(added.error());
    addPlacement(evaluation, opened, parts, options);
    addGain(evaluation, data.identityError(specs, stop));
    return evaluation;
}

} // namespace

Expected<Evaluation> evaluateCandidate(const Opened &opened, const EdgeData &data, const Candidate &candidate,
                                       const EvaluateOptions &options, std::stop_token stop, const ProgressSink &progress)
{
    const Clock::time_point start = Clock::now();
    Evaluation evaluation = blank(data, candidate, options);
    for (const ChainMember &member : candidate.chain)
        evaluation.chain.push_back({member.method, {}, {}});
    if (!candidate.unavailable.empty()) {
        evaluation.status = EvaluationStatus::Refused;
        evaluation.reason = evaluation.rule = candidate.unavailable;
        return evaluation;
    }
    auto fitted = fitChain(opened, data, candidate, stop, progress);
    if (!fitted) {
        if (isCallers(fitted.error()))
            return tl::make_unexpected(fitted.error());
        evaluation = stopped(std::move(evaluation), EvaluationStatus::Refused, fitted.error());
        if (fitted.error().rule == "not_built")
            evaluation.reason = "not_built";
        evaluation.seconds = secondsSince(start);
        return evaluation;
    }
    evaluation.chain = std::move(fitted->members);
    evaluation.rewrite = std::make_shared<const Rewrite>(std::move(fitted->rewrite));
    auto result = measured(opened, data, std::move(evaluation), options, stop);
    if (result)
        result->seconds = secondsSince(start);
    return result;
}

Expected<Evaluation> evaluateRewrite(const Opened &opened, const EdgeData &data, const Candidate &candidate,
                                     const Rewrite &rewrite, const EvaluateOptions &options, std::stop_token stop)
{
    const Clock::time_point start = Clock::now();
    if (rewrite.specs && !(*rewrite.specs == specsOf(candidate)) && !options.refit)
        return usageError(data.parts().edge.id.value,
                          "the factors were fitted under " + canonicalText(rewrite.specs->act, Role::Activation) + " / " +
                              canonicalText(rewrite.specs->weight, Role::Weight),
                          "the same specs, or --refit");
    Evaluation evaluation = blank(data, candidate, options);
    for (const ChainMember &member : candidate.chain) {
        const MethodRow *row = findMethod(member.method);
        auto params = row ? resolveParams(*row, member) : Expected<Params>(Params());
        evaluation.chain.push_back({member.method, params ? params->fields() : Fields{}, rewrite.fitted});
    }
    evaluation.rewrite = std::make_shared<const Rewrite>(rewrite);
    auto result = measured(opened, data, std::move(evaluation), options, stop);
    if (result)
        result->seconds = secondsSince(start);
    return result;
}

} // namespace planish
