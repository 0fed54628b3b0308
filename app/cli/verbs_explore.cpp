// intervene, diff: what happens when something changes, and what changed between two dumps.
#include "app/cli/print.h"
#include "app/cli/verbs.h"
#include "core/run/run_diff.h"
#include "core/run/run_intervene.h"

namespace planish::cli {

namespace {

Expected<Part> interventionPart(const Arguments &a)
{
    if (a.interventionPart == "held_out")
        return Part::HeldOut;
    if (a.interventionPart == "calibration")
        return Part::Calibration;
    if (a.interventionPart == "all")
        return Part::All;
    return usageError("--part " + a.interventionPart, "unknown part", "held_out, calibration or all");
}

Expected<void> fillOptions(const Arguments &a, InterventionOptions &options)
{
    auto part = interventionPart(a);
    if (!part)
        return tl::make_unexpected(part.error());
    if (a.control < 0)
        return usageError("--control " + std::to_string(a.control), "no number of random targets", "0 or more");
    options.part = *part;
    options.control = static_cast<std::size_t>(a.control);
    options.seed = a.global.seed;
    if (a.act.empty() && a.weight.empty())
        return {};
    Candidate specs;
    if (auto filled = fillSpecs(a, specs); !filled)
        return filled;
    options.specs = SpecPair{specs.act, specs.weight, std::nullopt};
    return {};
}

Expected<InterveneRequest> interveneRequest(const Arguments &a)
{
    InterveneRequest request;
    request.edges = a.edges;
    auto target = parseTarget(a.target);
    if (!target)
        return tl::make_unexpected(target.error());
    auto action = parseAction(a.action);
    if (!action)
        return tl::make_unexpected(action.error());
    auto rows = rowRequest(a);
    if (!rows)
        return tl::make_unexpected(rows.error());
    request.target = *target;
    request.action = *action;
    request.rows = *rows;
    if (auto filled = fillOptions(a, request.options); !filled)
        return tl::make_unexpected(filled.error());
    if (request.action.needsSpecs() && !request.options.specs)
        return usageError("--action " + a.action, "it is about quantizers and none is given", "--act SPEC --weight SPEC");
    return request;
}

} // namespace

int interveneVerb(const Invocation &invocation)
{
    const Arguments &a = invocation.arguments;
    auto request = interveneRequest(a);
    if (!request)
        return printError(request.error());
    auto session = openSession(invocation);
    if (!session)
        return printError(session.error());
    auto interventions = runIntervene(*session->engine, *session->opened, *request, invocation.stop, invocation.progress);
    if (!interventions)
        return printError(interventions.error());
    print(a, toJson(*interventions));
    return 0;
}

int diffVerb(const Invocation &invocation)
{
    const Arguments &a = invocation.arguments;
    auto session = openSession(invocation);
    if (!session)
        return printError(session.error());
    auto other = session->engine->open({a.files.at(1), {}, a.global}, invocation.stop, invocation.progress);
    if (!other)
        return printError(other.error());
    auto rows = rowRequest(a);
    if (!rows)
        return printError(rows.error());
    auto difference = runDiff(*session->engine, *session->opened, **other, {a.edges, *rows}, invocation.stop, invocation.progress);
    if (!difference)
        return printError(difference.error());
    if (!a.csv.empty()) {
        if (auto written = writeDifferenceCsv(*difference, a.csv); !written)
            return printError(written.error());
    }
    print(a, toJson(*difference));
    return 0;
}

} // namespace planish::cli
