// The verbs of planish-cli: one function each, found through one table. A verb builds a request, calls core/run and prints.
#pragma once

#include <stop_token>
#include <string>

#include "app/cli/args.h"
#include "core/run/engine.h"

namespace planish::cli {

struct Invocation {
    const Arguments &arguments;
    std::stop_token stop;
    ProgressSink progress;
};

/// Exit code of cli.md. Errors are printed by the verb.
using VerbFunction = int (*)(const Invocation &);
VerbFunction findVerb(const std::string &name);

int infoVerb(const Invocation &);
int analyzeVerb(const Invocation &);
int mergeVerb(const Invocation &);
int quantizeVerb(const Invocation &);
int diffVerb(const Invocation &);
int interveneVerb(const Invocation &);
int synthVerb(const Invocation &);
int evaluateVerb(const Invocation &);
int sweepVerb(const Invocation &);
int compareVerb(const Invocation &);
int planVerb(const Invocation &);
int checkVerb(const Invocation &);
int applyVerb(const Invocation &);
int verifyVerb(const Invocation &);
int reportVerb(const Invocation &);
int pythonVerb(const Invocation &);
int methodsVerb(const Invocation &);
int formatsVerb(const Invocation &);
int backendsVerb(const Invocation &);
int exportVerb(const Invocation &);
int targetsVerb(const Invocation &);

/// Engine and opened data of a verb that reads FILE and --weights.
struct Session {
    std::shared_ptr<Engine> engine;
    std::shared_ptr<const Opened> opened;
};
Expected<Session> openSession(const Invocation &invocation);
/// --act, --weight, --kv; `required` names the flag that must be there.
Expected<void> fillSpecs(const Arguments &arguments, Candidate &candidate);

} // namespace planish::cli
