// info, analyze, merge, quantize, synth: what a file holds and what it looks like.
#include <iostream>

#include "app/cli/print.h"
#include "app/cli/verbs.h"
#include "core/run/analysis_csv.h"
#include "core/run/checkpoint_info.h"
#include "core/run/envelope.h"
#include "core/run/run_merge.h"
#include "core/run/run_synth.h"

namespace planish::cli {

Expected<Session> openSession(const Invocation &invocation)
{
    const Arguments &a = invocation.arguments;
    auto engine = Engine::create(a.global);
    if (!engine)
        return tl::make_unexpected(engine.error());
    auto opened = (*engine)->open({a.files.front(), a.weights, a.global}, invocation.stop, invocation.progress);
    if (!opened)
        return tl::make_unexpected(opened.error());
    return Session{*engine, *opened};
}

int infoVerb(const Invocation &invocation)
{
    const Arguments &a = invocation.arguments;
    auto session = openSession(invocation);
    if (session) {
        print(a, infoJson(*session->opened, {.names = a.names}));
        return 0;
    }
    // A file of weights alone is no dump, but it can be told about.
    if (session.error().code == ErrorCode::Data && a.weights.empty()) {
        if (auto checkpoint = openCheckpoint(a.files.front(), a.global.config)) {
            print(a, infoJson(**checkpoint));
            return 0;
        } else if (looksLikeCheckpoint(a.files.front())) {
            return printError(checkpoint.error());
        }
    }
    return printError(session.error());
}

namespace {

Expected<AnalyzeRequest> analyzeRequest(const Arguments &a)
{
    AnalyzeRequest request;
    if (a.attention) // said aloud: silence would read as "no pressure found"
        return usageError("--attention", "this version measures no sink mass and no logit gap", "analyze without it");
    request.edges = a.edges;
    request.tau = a.tau;
    request.rules = a.rules;
    request.saveStats = a.saveStats;
    request.sensitivity = a.sensitivity;
    request.join = a.join;
    auto rows = rowRequest(a);
    if (!rows)
        return tl::make_unexpected(rows.error());
    request.rows = *rows;
    if (a.part == "calibration")
        request.part = Part::Calibration;
    else if (a.part == "held_out")
        request.part = Part::HeldOut;
    else if (a.part != "all")
        return usageError("--part " + a.part, "unknown part", "calibration, held_out or all");
    if (a.arrays == "all")
        request.arrays = ArrayDetail::All;
    else if (a.arrays == "channel")
        request.arrays = ArrayDetail::Channel;
    else if (a.arrays == "none")
        request.arrays = ArrayDetail::None;
    else if (!a.arrays.empty())
        return usageError("--arrays " + a.arrays, "unknown choice", "all, channel or none");
    Candidate specs;
    if (a.sensitivity) {
        if (auto filled = fillSpecs(a, specs); !filled)
            return tl::make_unexpected(filled.error());
        request.act = specs.act;
        request.weight = specs.weight;
    }
    return request;
}

} // namespace

int analyzeVerb(const Invocation &invocation)
{
    const Arguments &a = invocation.arguments;
    auto request = analyzeRequest(a);
    if (!request)
        return printError(request.error());
    auto session = openSession(invocation);
    if (!session)
        return printError(session.error());
    auto analysis = session->engine->analyze(*session->opened, *request, invocation.stop, invocation.progress);
    if (!analysis)
        return printError(analysis.error());
    if (!a.csv.empty()) {
        if (auto written = writeAnalysisCsv(*analysis, a.csv); !written)
            return printError(written.error());
    }
    print(a, toJson(*analysis, request->arrays));
    int code = 0;
    for (const Error &failure : analysis->failures)
        code = printError(failure);
    return code;
}

int mergeVerb(const Invocation &invocation)
{
    const Arguments &a = invocation.arguments;
    auto merged = mergeStatisticsFiles(a.files, a.saveStats);
    if (!merged)
        return printError(merged.error());
    print(a, toJson(*merged, ArrayDetail::Auto));
    return 0;
}

int quantizeVerb(const Invocation &invocation)
{
    const Arguments &a = invocation.arguments;
    QuantizeVerbRequest request{.tensor = a.tensor, .specText = a.spec};
    auto spec = parseQuantSpec(a.spec, Role::Either);
    if (!spec)
        return printError(spec.error());
    request.spec = *spec;
    for (auto [text, flag, slot] : {std::tuple{&a.quantizeRows, "--rows", &request.rows}, std::tuple{&a.calibrationRows, "--calibration-rows", &request.calibrationRows}}) {
        if (text->empty())
            continue;
        auto range = parseRanges(*text, flag);
        if (!range)
            return printError(range.error());
        *slot = range->front();
    }
    auto engine = Engine::create(a.global);
    if (!engine)
        return printError(engine.error());
    auto result = (*engine)->quantize(a.files.front(), request, invocation.stop);
    if (!result)
        return printError(result.error());
    print(a, toJson(*result));
    return 0;
}

int synthVerb(const Invocation &invocation)
{
    const Arguments &a = invocation.arguments;
    const SynthRequest request{.out = a.out,
                               .modelOut = a.modelOut,
                               .family = a.global.family.empty() ? "llama" : a.global.family,
                               .tokens = a.tokens,
                               .channels = a.channels,
                               .layers = a.layers,
                               .tied = a.tied,
                               .seed = a.global.seed};
    auto files = runSynth(request, invocation.stop, invocation.progress);
    if (!files)
        return printError(files.error());
    print(a, filesJson(*files));
    return 0;
}

} // namespace planish::cli
