// report, python: what leaves the program for people and for their own code.
#include "app/cli/print.h"
#include "app/cli/verbs.h"
#include "core/run/envelope.h"
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

} // namespace planish::cli
