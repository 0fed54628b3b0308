// evaluate, sweep, compare: candidates on held-out rows.
#include <charconv>
#include <cmath>
#include <iostream>

#include "app/cli/comparison_table.h"
#include "app/cli/csv.h"
#include "app/cli/print.h"
#include "app/cli/verbs.h"
#include "core/run/envelope.h"
#include "core/run/report_commands.h"

namespace planish::cli {

Expected<void> fillSpecs(const Arguments &a, Candidate &candidate)
{
    for (auto [text, flag, role, slot] : {std::tuple{&a.act, "--act", Role::Activation, &candidate.act},
                                          std::tuple{&a.weight, "--weight", Role::Weight, &candidate.weight}}) {
        if (text->empty())
            return usageError(a.verb, std::string(flag) + " is missing", "a quantizer such as int8:token, or `none`");
        auto spec = parseQuantSpec(*text, role);
        if (!spec)
            return tl::make_unexpected(spec.error());
        *slot = *spec;
    }
    if (!a.kv.empty()) {
        auto spec = parseQuantSpec(a.kv, Role::Activation);
        if (!spec)
            return tl::make_unexpected(spec.error());
        candidate.kv = *spec;
    }
    return {};
}

namespace {

Expected<EvaluateOptions> evaluateOptions(const Arguments &a)
{
    EvaluateOptions options;
    auto rows = rowRequest(a);
    if (!rows)
        return tl::make_unexpected(rows.error());
    options.rows = *rows;
    options.preview = a.preview;
    options.breakdown = a.breakdown;
    options.refit = a.refit;
    options.partial = a.partial;
    options.ledger = a.global.ledger;
    options.tensorParallel = a.tensorParallel;
    return options;
}

Expected<EvaluateRequest> evaluateRequest(const Arguments &a)
{
    EvaluateRequest request;
    request.edges = a.edges;
    auto chain = parseChain(a.method, a.sets);
    if (!chain)
        return tl::make_unexpected(chain.error());
    request.candidate.chain = *chain;
    request.candidate.name = a.method;
    for (const std::string &set : a.sets)
        request.candidate.name += " " + set;
    request.candidate.seed = a.global.seed;
    if (auto filled = fillSpecs(a, request.candidate); !filled)
        return tl::make_unexpected(filled.error());
    auto options = evaluateOptions(a);
    if (!options)
        return tl::make_unexpected(options.error());
    request.options = *options;
    return request;
}

int printNotOk(const std::vector<Evaluation> &evaluations)
{
    int code = 0;
    for (const Evaluation &evaluation : evaluations) {
        if (evaluation.status == EvaluationStatus::Ok)
            continue;
        const std::string what = evaluation.status == EvaluationStatus::Refused ? "refused" : "failed";
        std::string reason = evaluation.reason;
        if (reason.starts_with(evaluation.edge.value + ": "))
            reason = reason.substr(evaluation.edge.value.size() + 2);
        const std::string expected = evaluation.rule.empty() ? "a candidate that fits this edge" : evaluation.rule + " to hold";
        code = printError(Error{ErrorCode::Data, evaluation.edge.value + ": " + evaluation.candidate, what + ": " + reason, expected, evaluation.rule});
    }
    return code;
}

Expected<std::vector<double>> sweepValues(const Arguments &a)
{
    std::vector<double> values;
    if (!a.values.empty()) {
        std::size_t begin = 0;
        while (begin <= a.values.size()) {
            const std::size_t end = std::min(a.values.find(',', begin), a.values.size());
            double value = 0;
            const auto [tail, code] = std::from_chars(a.values.data() + begin, a.values.data() + end, value);
            if (code != std::errc() || tail != a.values.data() + end)
                return usageError("--values " + a.values, "not a list of numbers", "numbers separated by commas");
            values.push_back(value);
            begin = end + 1;
        }
        return values;
    }
    if (!a.from || !a.until || !a.step)
        return usageError("sweep", "no grid", "--from A --to B --step S, or --values a,b,c");
    if (!(*a.step > 0) || *a.until < *a.from)
        return usageError("sweep", "an empty grid", "--step above 0 and --to not below --from");
    const double count = std::floor((*a.until - *a.from) / *a.step + 1e-9);
    if (count > 100000)
        return usageError("--step", "more than 100,000 grid points", "a larger step");
    for (int i = 0; i <= int(count); ++i)
        values.push_back(*a.from + i * *a.step);
    return values;
}

Expected<std::vector<Candidate>> candidatesOf(const Arguments &a)
{
    if (a.preset.empty() == a.candidates.empty())
        return usageError(a.verb, a.preset.empty() ? "no candidates" : "both --preset and --candidates", "--preset P or --candidates C.yaml");
    if (a.effort != "quick" && a.effort != "full")
        return usageError("--effort " + a.effort, "unknown effort", "quick or full");
    auto candidates = a.preset.empty() ? readCandidatesFile(a.candidates) : presetCandidates(a.preset, a.effort == "quick" ? Effort::Quick : Effort::Full);
    if (candidates && !a.preset.empty() && a.global.seed != 0) {
        for (Candidate &candidate : *candidates)
            candidate.seed = a.global.seed;
    }
    return candidates;
}

Expected<RankBy> rankByOf(const Arguments &a)
{
    if (a.rankBy == "auto")
        return RankBy::Auto;
    if (a.rankBy == "pooled")
        return RankBy::Pooled;
    if (a.rankBy == "rows")
        return RankBy::Rows;
    return usageError("--rank-by " + a.rankBy, "unknown ranking", "auto, pooled or rows");
}

Expected<PlanOptions> planOptions(const Arguments &a, const std::vector<Candidate> &candidates)
{
    PlanOptions options;
    auto evaluate = evaluateOptions(a);
    if (!evaluate)
        return tl::make_unexpected(evaluate.error());
    options.evaluate = *evaluate;
    options.evaluate.target = a.target;
    options.candidates = candidates;
    if (a.choose == "knee")
        options.choose = Choose::Knee;
    else if (a.choose == "within")
        options.choose = Choose::Within;
    else if (a.choose != "lowest")
        return usageError("--choose " + a.choose, "unknown rule", "lowest, knee or within");
    auto rankBy = rankByOf(a);
    if (!rankBy)
        return tl::make_unexpected(rankBy.error());
    options.rankBy = *rankBy;
    options.maxOnlineFlops = a.maxOnlineFlops;
    options.maxWeightBits = a.maxWeightBits;
    for (const std::string &pin : a.pins) {
        const std::size_t equals = pin.find('=');
        if (equals == std::string::npos)
            return usageError("--pin " + pin, "no candidate named", "EDGE=NAME");
        options.pins.emplace_back(pin.substr(0, equals), pin.substr(equals + 1));
    }
    options.exclude = a.exclude;
    options.streams = a.streams;
    options.allowOnline = a.allowOnline;
    options.allowFunctionChange = a.allowFunctionChange;
    options.acceptJoint = a.acceptJoint;
    options.storeWeights = a.storeWeights;
    options.stateDir = a.state;
    return options;
}

/// The line as typed, for the manifest; what only changes how it prints is left out.
std::string typedLine(const Arguments &a)
{
    std::vector<std::string> words = {"planish-cli"};
    for (std::size_t i = 1; i < a.typed.size(); ++i) {
        if (a.typed[i] != "--json" && a.typed[i] != "--progress" && a.typed[i] != "--quiet")
            words.push_back(a.typed[i]);
    }
    return commandLine(words);
}

/// cli.md: compare is done when identity and at least one other candidate were scored on some edge.
int comparisonExit(const Comparison &comparison)
{
    std::string reason = "no edge matched";
    for (const EdgeComparison &edge : comparison.edges) {
        int scored = 0;
        for (const Evaluation &evaluation : edge.evaluations)
            scored += evaluation.status == EvaluationStatus::Ok;
        if (scored >= 2 || (scored == 1 && edge.evaluations.size() == 1))
            return 0;
        reason = edge.skipped.empty() ? edge.edge.value + ": only " + std::to_string(scored) + " candidate was scored" : edge.skipped;
    }
    return printError(Error{ErrorCode::Data, "compare", "nothing could be compared: " + reason, "identity and one other candidate on some edge", {}});
}

} // namespace

int evaluateVerb(const Invocation &invocation)
{
    const Arguments &a = invocation.arguments;
    auto request = evaluateRequest(a);
    if (!request)
        return printError(request.error());
    auto session = openSession(invocation);
    if (!session)
        return printError(session.error());
    auto evaluations = session->engine->evaluate(*session->opened, *request, invocation.stop, invocation.progress);
    if (!evaluations)
        return printError(evaluations.error());
    print(a, toJson(*evaluations, a.breakdown));
    return printNotOk(*evaluations);
}

int sweepVerb(const Invocation &invocation)
{
    const Arguments &a = invocation.arguments;
    auto base = evaluateRequest(a);
    if (!base)
        return printError(base.error());
    auto values = sweepValues(a);
    if (!values)
        return printError(values.error());
    auto session = openSession(invocation);
    if (!session)
        return printError(session.error());
    auto sweep = session->engine->sweep(*session->opened, {*base, a.param, *values}, invocation.stop, invocation.progress);
    if (!sweep)
        return printError(sweep.error());
    if (!a.csv.empty()) {
        if (auto written = writeEvaluationsCsv(sweep->evaluations, {}, a.csv); !written)
            return printError(written.error());
    }
    print(a, toJson(*sweep));
    const bool any = std::any_of(sweep->evaluations.begin(), sweep->evaluations.end(),
                                 [](const Evaluation &each) { return each.status == EvaluationStatus::Ok; });
    return any ? 0 : printNotOk(sweep->evaluations);
}

int compareVerb(const Invocation &invocation)
{
    const Arguments &a = invocation.arguments;
    auto candidates = candidatesOf(a);
    if (!candidates)
        return printError(candidates.error());
    auto rankBy = rankByOf(a);
    if (!rankBy)
        return printError(rankBy.error());
    auto options = evaluateOptions(a);
    if (!options)
        return printError(options.error());
    if (a.ablate)
        candidates = withAblations(*candidates);
    auto session = openSession(invocation);
    if (!session)
        return printError(session.error());
    const CompareRequest request{.edges = a.edges, .candidates = *candidates, .options = *options, .rankBy = *rankBy, .stateDir = a.state};
    auto comparison = session->engine->compare(*session->opened, request, invocation.stop, invocation.progress);
    if (!comparison)
        return printError(comparison.error());
    if (!a.csv.empty()) {
        if (auto written = writeComparisonCsv(*comparison, a.csv); !written)
            return printError(written.error());
    }
    if (a.json)
        print(a, toJson(*comparison));
    else if (!a.quiet)
        std::cout << comparisonTable(*comparison) << std::flush;
    return comparisonExit(*comparison);
}

int planVerb(const Invocation &invocation)
{
    const Arguments &a = invocation.arguments;
    auto candidates = candidatesOf(a);
    if (!candidates)
        return printError(candidates.error());
    auto options = planOptions(a, *candidates);
    if (!options)
        return printError(options.error());
    std::optional<MachineProfile> machine;
    if (!a.global.machineProfile.empty()) {
        auto profile = readMachineProfile(a.global.machineProfile);
        if (!profile)
            return printError(profile.error());
        machine = *profile;
    }
    auto session = openSession(invocation);
    if (!session)
        return printError(session.error());
    auto plan = session->engine->plan(*session->opened, *options, invocation.stop, invocation.progress);
    if (!plan)
        return printError(plan.error());
    plan->command = typedLine(a);
    auto files = writePlan(*plan, a.out);
    if (!files)
        return printError(files.error());
    print(a, plannedJson(*plan, a.out, *files, machine ? &*machine : nullptr));
    return 0;
}

} // namespace planish::cli
