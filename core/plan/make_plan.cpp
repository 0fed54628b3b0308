#include <algorithm>

#include "core/plan/choose.h"
#include "core/plan/freeze.h"
#include "core/plan/joint.h"
#include "core/plan/manifest.h"

namespace planish {

namespace {

// plan.md "Equivalence thresholds": refused above, warned above.
constexpr double kKappaRefused = 1e4;
constexpr double kKappaWarned = 100;
constexpr double kScaleWarned = 1e4;

struct Verdict {
    std::string status, reason; ///< empty reason = plannable
};

bool needsOnline(const Evaluation &evaluation)
{
    return (evaluation.placement && evaluation.placement->needsOnline()) || (evaluation.rewrite && evaluation.rewrite->lowRank);
}

const Refusal *firstError(const Evaluation &evaluation)
{
    if (!evaluation.placement)
        return nullptr;
    for (const Refusal &refusal : evaluation.placement->refusals) {
        if (refusal.severity == Refusal::Severity::Error)
            return &refusal;
    }
    return nullptr;
}

bool replacesWeights(const Evaluation &evaluation)
{
    return evaluation.rewrite && std::any_of(evaluation.rewrite->replaced.begin(), evaluation.rewrite->replaced.end(),
                                             [](const auto &matrix) { return matrix.has_value(); });
}

/// Step 1 and 3 of plan.md: may this evaluation enter a plan?
Verdict judge(const Evaluation &e, const PlanOptions &options)
{
    if (e.status == EvaluationStatus::Refused)
        return {"refused", e.reason.empty() ? e.rule : e.reason};
    if (e.status == EvaluationStatus::Failed || !e.output)
        return {"failed", e.reason.empty() ? "equivalence_failed" : e.reason};
    if (e.analysisOnly || e.act.grid.sharing == Sharing::Channel)
        return {"refused", "analysis_only"};
    if (e.partial)
        return {"refused", "consumers_missing"};
    if (const Refusal *error = firstError(e))
        return {"refused", error->sentence.empty() ? error->rule : error->sentence};
    if (needsOnline(e) && !options.allowOnline)
        return {"refused", "online"};
    if (e.rewrite && e.rewrite->changesFunction && !options.allowFunctionChange)
        return {"refused", "function_change"};
    if (replacesWeights(e) && !options.storeWeights)
        return {"refused", "replaced weights need --store-weights"};
    if (e.equivalence && !e.equivalence->storedPassed)
        return {"failed", "equivalence_failed"};
    if (e.conditioning && e.conditioning->kappaNonDiagonal > kKappaRefused)
        return {"refused", "conditioning"};
    return {"ok", {}};
}

bool globMatches(std::string_view pattern, std::string_view text)
{
    if (pattern.empty())
        return text.empty();
    if (pattern[0] == '*')
        return globMatches(pattern.substr(1), text) || (!text.empty() && globMatches(pattern, text.substr(1)));
    return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) && globMatches(pattern.substr(1), text.substr(1));
}

bool appliesTo(const Candidate &candidate, const EdgeId &edge)
{
    return candidate.edges.empty() ||
           std::any_of(candidate.edges.begin(), candidate.edges.end(), [&](const std::string &glob) { return globMatches(glob, edge.value); });
}

/// One edge while the plan is made.
struct EdgeWork {
    EdgeChoice choice;
    ChoiceLog log;
    EdgeDataFacts facts;
    std::vector<std::string> notes;
    std::string legality; ///< first sentence why something could not be fused
};

Evaluation unavailable(const Edge &edge, const Candidate &candidate)
{
    Evaluation evaluation;
    evaluation.edge = edge.id;
    evaluation.candidate = candidate.name;
    evaluation.status = EvaluationStatus::Refused;
    evaluation.reason = candidate.unavailable;
    evaluation.act = candidate.act;
    evaluation.weight = candidate.weight;
    return evaluation;
}

void warnOf(const Evaluation &e, const std::string &name, EdgeWork &work)
{
    if (!e.conditioning)
        return;
    if (e.conditioning->kappaNonDiagonal > kKappaWarned)
        work.notes.push_back(name + ": the non-diagonal part has a condition number above 100");
    if (e.conditioning->scaleMin > 0 && e.conditioning->scaleMax / e.conditioning->scaleMin > kScaleWarned)
        work.notes.push_back(name + ": the scales span more than 1e4");
}

void record(EdgeWork &work, const Evaluation &evaluation, const PlanOptions &options)
{
    const Verdict verdict = judge(evaluation, options);
    ChoiceEntry entry{.name = evaluation.candidate, .status = verdict.status, .reason = verdict.reason};
    if (evaluation.output) {
        entry.relativeFrobenius = evaluation.output->relativeFrobenius;
        entry.onlineFlops = evaluation.ledger.onlineFlopsPerToken;
        entry.weightBits = evaluation.ledger.weightBits;
    }
    if (evaluation.uncertainty) {
        entry.low = evaluation.uncertainty->low;
        entry.high = evaluation.uncertainty->high;
    }
    if (work.legality.empty() && evaluation.candidate != "none") {
        if (evaluation.placement && !evaluation.placement->refusals.empty())
            work.legality = evaluation.placement->refusals.front().sentence;
        else if (evaluation.status == EvaluationStatus::Refused && !evaluation.rule.empty())
            work.legality = evaluation.reason;
    }
    work.log.candidates.push_back(std::move(entry));
    work.choice.plannable.push_back(verdict.reason.empty());
}

/// Steps 1 to 4 for one edge; nullopt with a note when the edge cannot be evaluated.
Expected<std::optional<EdgeWork>> evaluateEdge(const Opened &opened, const Edge &edge, const PlanOptions &options,
                                               const std::shared_ptr<const Backend> &backend, std::stop_token stop, const ProgressSink &progress,
                                               std::vector<std::string> &skipped)
{
    auto data = loadEdgeData(opened, edge, options.evaluate, backend, stop);
    if (!data) {
        if (data.error().code == ErrorCode::Cancelled || data.error().code == ErrorCode::Machine || data.error().code == ErrorCode::Usage)
            return tl::make_unexpected(data.error());
        skipped.push_back(edge.id.value + ": skipped: " + data.error().what);
        return std::optional<EdgeWork>();
    }
    EdgeWork work;
    work.choice.edge = &edge;
    work.log.edge = edge.id;
    work.facts = factsOf(**data);
    for (const Candidate &candidate : options.candidates) {
        if (!appliesTo(candidate, edge.id))
            continue;
        if (stop.stop_requested())
            return cancelled(edge.id.value);
        auto evaluation = candidate.unavailable.empty() ? evaluateCandidate(opened, **data, candidate, options.evaluate, stop, progress)
                                                        : Expected<Evaluation>(unavailable(edge, candidate));
        if (!evaluation)
            return tl::make_unexpected(evaluation.error());
        evaluation->candidate = candidate.name;
        record(work, *evaluation, options);
        work.choice.evaluations.push_back(std::move(*evaluation));
    }
    if (work.choice.evaluations.empty() || !work.choice.plannable[0]) {
        const std::string why = work.choice.evaluations.empty() ? "no candidate applies" : work.log.candidates[0].reason;
        skipped.push_back(edge.id.value + ": skipped: " + why);
        return std::optional<EdgeWork>();
    }
    for (const Consumer &consumer : edge.consumers) {
        const ResolvedTensor *tensor = opened.weights->find(consumer.tensor);
        if (tensor && tensor->shape.size() == 2) {
            const std::int64_t rows = consumer.rows.end < 0 ? static_cast<std::int64_t>(tensor->shape[0]) : consumer.rows.end - consumer.rows.begin;
            work.choice.weightElements += rows * static_cast<std::int64_t>(tensor->shape[1]);
        }
    }
    return std::optional<EdgeWork>(std::move(work));
}

Expected<void> pinEdges(std::vector<EdgeWork> &works, const Opened &opened, const PlanOptions &options)
{
    for (const auto &[glob, name] : options.pins) {
        auto edges = matchEdges(opened.graph, {glob});
        if (!edges)
            return tl::make_unexpected(edges.error());
        for (EdgeWork &work : works) {
            if (std::find(edges->begin(), edges->end(), work.choice.edge->id) == edges->end())
                continue;
            const auto &log = work.log.candidates;
            const auto found = std::find_if(log.begin(), log.end(), [&](const ChoiceEntry &entry) { return entry.name == name; });
            if (found == log.end())
                return usageError("--pin " + glob + "=" + name, "no candidate has this name", "expected the name of a candidate");
            const auto index = static_cast<std::size_t>(found - log.begin());
            if (!work.choice.plannable[index])
                return refusal(work.choice.edge->id.value, "the pinned candidate " + name + " is " + found->status + ": " + found->reason,
                               "expected a candidate that may enter a plan", found->reason);
            work.choice.chosen = index;
            work.choice.pinned = true;
        }
    }
    return {};
}

const char *ruleName(Choose rule)
{
    return rule == Choose::Knee ? "knee" : rule == Choose::Within ? "within" : "lowest";
}

void markTies(EdgeWork &work, RankBy by)
{
    std::vector<Evaluation> plannable;
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < work.choice.evaluations.size(); ++i) {
        if (work.choice.plannable[i]) {
            plannable.push_back(work.choice.evaluations[i]);
            indices.push_back(i);
        }
    }
    for (const RankEntry &entry : rankEvaluations(plannable, by))
        work.log.candidates[indices[entry.index]].tie = entry.tie;
}

Expected<void> chooseAll(std::vector<EdgeWork> &works, const Opened &opened, const PlanOptions &options)
{
    if (auto pinned = pinEdges(works, opened, options); !pinned)
        return pinned;
    for (EdgeWork &work : works) {
        markTies(work, options.rankBy);
        work.log.rule = work.choice.pinned ? "pin" : ruleName(options.choose);
        if (work.choice.pinned)
            continue;
        if (options.choose == Choose::Lowest)
            work.choice.chosen = chooseLowest(work.choice, options.rankBy);
        else if (options.choose == Choose::Knee)
            work.choice.chosen = chooseKnee(work.choice);
    }
    if (options.choose != Choose::Within)
        return {};
    std::vector<EdgeChoice> choices;
    for (EdgeWork &work : works)
        choices.push_back(std::move(work.choice));
    auto within = chooseWithin(choices, {options.maxOnlineFlops, options.maxWeightBits});
    for (std::size_t i = 0; i < works.size(); ++i)
        works[i].choice = std::move(choices[i]);
    return within;
}

Expected<std::vector<const Edge *>> wantedEdges(const Opened &opened, const PlanOptions &options, std::vector<std::string> &notes)
{
    std::vector<EdgeId> excluded;
    if (!options.exclude.empty()) {
        auto matched = matchEdges(opened.graph, options.exclude);
        if (!matched)
            return tl::make_unexpected(matched.error());
        excluded = std::move(*matched);
    }
    std::vector<const Edge *> edges;
    for (const Edge &edge : opened.graph.edges) {
        if (std::find(excluded.begin(), excluded.end(), edge.id) != excluded.end())
            notes.push_back(edge.id.value + ": excluded by --exclude");
        else if (edge.consumers.empty())
            notes.push_back(edge.id.value + ": skipped: no linear reads this edge; only stream candidates apply");
        else if (edge.basis != "original")
            return refusal(edge.id.value, "its basis is " + edge.basis, "expected rows in the original basis", "basis_already_applied");
        else
            edges.push_back(&edge);
    }
    return edges;
}

std::string sharedText(const std::vector<std::string> &skipped)
{
    return skipped.empty() ? std::string("no edge can be planned") : "no edge can be planned: " + skipped.front();
}

Expected<void> checkOptions(const PlanOptions &options)
{
    if (!options.evaluate.rows.fitRows.empty() || !options.evaluate.rows.scoreRows.empty())
        return refusal("--fit-rows", "results with explicit rows never enter a plan", "expected the split of --calibration", "analysis_only");
    if (options.streams)
        return usageError("--streams", "this version plans edges only", "expected plan without --streams; evaluate quarot or spinquant per edge");
    return {};
}

std::vector<Assignment> toAssignments(std::vector<EdgeWork> &works, const PlanOptions &options, std::vector<std::string> &notes)
{
    std::vector<Assignment> assignments;
    for (EdgeWork &work : works) {
        Assignment assignment = assignmentOf(work.choice, options);
        const bool alternatives = std::any_of(work.choice.plannable.begin() + 1, work.choice.plannable.end(), [](std::uint8_t ok) { return ok; });
        if (work.choice.chosen == 0 && !alternatives && !work.legality.empty()) {
            assignment.status = "refused";
            assignment.reason = work.legality;
        } else if (!work.legality.empty()) {
            notes.push_back(work.legality);
        }
        warnOf(work.choice.evaluations[work.choice.chosen], assignment.candidate.name, work);
        assignment.notes.insert(assignment.notes.end(), work.notes.begin(), work.notes.end());
        assignments.push_back(std::move(assignment));
    }
    return assignments;
}

} // namespace

Expected<Plan> makePlan(const Opened &opened, const PlanOptions &options, std::shared_ptr<const Backend> backend, std::stop_token stop,
                        const ProgressSink &progress)
{
    if (auto valid = checkOptions(options); !valid)
        return tl::make_unexpected(valid.error());
    Plan plan;
    auto edges = wantedEdges(opened, options, plan.notes);
    if (!edges)
        return tl::make_unexpected(edges.error());
    std::vector<EdgeWork> works;
    std::vector<std::string> skipped;
    for (const Edge *edge : *edges) {
        if (progress)
            progress({.stage = "plan", .done = static_cast<double>(works.size() + skipped.size()), .total = static_cast<double>(edges->size()), .unit = "edges"});
        auto work = evaluateEdge(opened, *edge, options, backend, stop, progress, skipped);
        if (!work)
            return tl::make_unexpected(work.error());
        if (*work)
            works.push_back(std::move(**work));
    }
    if (works.empty())
        return dataError(opened.dump->info().file, sharedText(skipped), "expected an edge whose consumers have weights; pass --weights");
    plan.notes.insert(plan.notes.end(), skipped.begin(), skipped.end());
    if (auto chosen = chooseAll(works, opened, options); !chosen)
        return tl::make_unexpected(chosen.error());
    plan.assignments = toAssignments(works, options, plan.notes);
    if (auto joint = evaluateJointly(opened, plan.assignments, options.evaluate, backend, stop, progress); !joint)
        return tl::make_unexpected(joint.error());
    if (auto fine = checkJoint(plan.assignments, opened.dump->info().file); !fine && !options.acceptJoint)
        return tl::make_unexpected(fine.error());
    for (EdgeWork &work : works)
        plan.choices.push_back(std::move(work.log));
    plan.ledgerOptions = options.evaluate.ledger;
    plan.tensorParallel = options.evaluate.tensorParallel;
    plan.target = options.evaluate.target;
    plan.backend = backend->info().key;
    if (auto frozen = freezePlan(plan, opened, works.front().facts, options); !frozen)
        return tl::make_unexpected(frozen.error());
    return plan;
}

} // namespace planish
