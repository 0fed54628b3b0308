// methods, formats, backends: the tables of this build; and the table of verbs itself.
#include "app/cli/print.h"
#include "app/cli/verbs.h"
#include "core/run/envelope.h"

namespace planish::cli {

int methodsVerb(const Invocation &invocation)
{
    print(invocation.arguments, methodsJson());
    return 0;
}

int formatsVerb(const Invocation &invocation)
{
    print(invocation.arguments, formatsJson());
    return 0;
}

int backendsVerb(const Invocation &invocation)
{
    print(invocation.arguments, backendsJson());
    return 0;
}

VerbFunction findVerb(const std::string &name)
{
    static constexpr std::pair<const char *, VerbFunction> kVerbs[] = {
        {"info", infoVerb},         {"analyze", analyzeVerb}, {"merge", mergeVerb},     {"quantize", quantizeVerb}, {"synth", synthVerb},
        {"evaluate", evaluateVerb}, {"sweep", sweepVerb},     {"compare", compareVerb}, {"plan", planVerb},         {"check", checkVerb},
        {"apply", applyVerb},       {"verify", verifyVerb}, {"report", reportVerb}, {"python", pythonVerb},   {"methods", methodsVerb}, {"formats", formatsVerb},   {"backends", backendsVerb},
        {"diff", diffVerb},         {"intervene", interveneVerb}, {"export", exportVerb}, {"targets", targetsVerb}};
    for (const auto &[key, verb] : kVerbs) {
        if (name == key)
            return verb;
    }
    return nullptr;
}

} // namespace planish::cli
