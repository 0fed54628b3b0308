// report, python, export, targets: what leaves the program for people and for their own code.
#include "app/cli/print.h"
#include "app/cli/verbs.h"
#include "core/run/envelope.h"
#include "core/run/run_export.h"
#include "core/run/run_python.h"
#include "core/run/run_report.h"

namespace planish::cli {

int reportVerb(const Invocation &invocation)
{
    const Arguments &a = invocation.arguments;
    ReportRequest request{
        .weights = a.weights, .planFile = a.plan, .out = a.out, .comparisons = a.comparisons, .checkpoint = a.checkpoint};
    auto rows = rowRequest(a);
    if (!rows)
        return printError(rows.error());
    request.rows = *rows;
    if (!a.global.machineProfile.empty()) {
        auto profile = readMachineProfile(a.global.machineProfile);
        if (!profile)
            return printError(profile.error());
        request.machine = *profile;
    }
    auto session = openSession(invocation);
    if (!session)
        return printError(session.error());
    auto files = runReport(*session->engine, *session->opened, request, invocation.stop, invocation.progress);
    if (!files)
        return printError(files.error());
    print(a, filesJson(*files));
    return 0;
}

int pythonVerb(const Invocation &invocation)
{
    auto files = writePythonBridge(invocation.arguments.out);
    if (!files)
        return printError(files.error());
    print(invocation.arguments, filesJson(*files));
    return 0;
}

int exportVerb(const Invocation &invocation)
{
    const Arguments &a = invocation.arguments;
    auto result = runExport(a.files.front(), a.target, a.out);
    if (!result)
        return printError(result.error());
    print(a, exportJson(*result));
    if (result->carriesSomething)
        return 0;
    return printError(Error{ErrorCode::Data, a.files.front(), "holds nothing that " + a.target + " can carry", "a plan with a transform that this target takes", {}});
}

int targetsVerb(const Invocation &invocation)
{
    auto targets = targetsJson();
    if (!targets)
        return printError(targets.error());
    print(invocation.arguments, *targets);
    return 0;
}

} // namespace planish::cli
