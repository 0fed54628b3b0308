// check, apply, verify: what happens to a plan after it was made.
#include "app/cli/print.h"
#include "app/cli/verbs.h"
#include "core/run/envelope.h"

namespace planish::cli {

namespace {

struct OpenedPlan {
    Plan plan;
    FamilyList families;
};

Expected<OpenedPlan> openPlan(const Arguments &a)
{
    auto plan = readPlan(a.files.front());
    if (!plan)
        return tl::make_unexpected(plan.error());
    auto families = FamilyList::load(resourceFolder(), a.global.familiesDir);
    if (!families)
        return tl::make_unexpected(families.error());
    return OpenedPlan{std::move(*plan), std::move(*families)};
}

} // namespace

int checkVerb(const Invocation &invocation)
{
    const Arguments &a = invocation.arguments;
    auto opened = openPlan(a);
    if (!opened)
        return printError(opened.error());
    auto result = checkPlan(a.files.front(), opened->plan, a.checkpoint, a.tensorParallel, a.target, opened->families);
    if (!result)
        return printError(result.error());
    print(a, toJson(*result));
    if (result->legal)
        return 0;
    for (const CheckFinding &finding : result->findings) {
        if (finding.severity != Refusal::Severity::Error)
            continue;
        std::string sentence = finding.sentence;
        if (sentence.starts_with(finding.edge + ": "))
            sentence = sentence.substr(finding.edge.size() + 2);
        return printError(Error{ErrorCode::Data, finding.edge.empty() ? a.files.front() : finding.edge, sentence, finding.rule + " expected to hold", finding.rule});
    }
    return printError(Error{ErrorCode::Data, a.files.front(), "a file of the plan changed", "the hashes written in the plan", {}});
}

int applyVerb(const Invocation &invocation)
{
    const Arguments &a = invocation.arguments;
    if (a.store != "stored" && a.store != "f64")
        return printError(Error{ErrorCode::Usage, "--store " + a.store, "unknown choice", "stored or f64", {}});
    auto opened = openPlan(a);
    if (!opened)
        return printError(opened.error());
    auto result = applyPlan(a.files.front(), opened->plan, a.checkpoint, a.out, a.store == "f64" ? StoreAs::F64 : StoreAs::Stored, opened->families,
                            invocation.stop, invocation.progress);
    if (!result)
        return printError(result.error());
    print(a, toJson(*result));
    return 0;
}

int verifyVerb(const Invocation &invocation)
{
    const Arguments &a = invocation.arguments;
    auto opened = openPlan(a);
    if (!opened)
        return printError(opened.error());
    auto engine = Engine::create(a.global);
    if (!engine)
        return printError(engine.error());
    auto result = verifyPlan(a.files.front(), opened->plan, a.files.at(1), a.checkpoint, a.transformed, opened->families, (*engine)->backend(),
                             invocation.stop, invocation.progress);
    if (!result)
        return printError(result.error());
    print(a, toJson(*result));
    if (result->passed)
        return 0;
    for (const VerifyEdge &edge : result->edges) {
        if (!edge.passed)
            return printError(Error{ErrorCode::Data, edge.edge.value, edge.reason, "the function of the original within the storage threshold", "equivalence_failed"});
    }
    const std::string tensor = result->changedTensors.empty() ? a.transformed : result->changedTensors.front();
    return printError(Error{ErrorCode::Data, tensor, "changed although the plan does not name it", "byte-identical tensors outside the plan", {}});
}

} // namespace planish::cli
