#include "app/cli/args.h"

#include <algorithm>
#include <iostream>

#include <CLI/CLI.hpp>

#include "core/io/nearest.h"

namespace planish::cli {

namespace {

using App = CLI::App;

void addRowFlags(App &verb, Arguments &a)
{
    verb.add_option("--calibration", a.calibration, "share of the units that calibrate (0..1)");
    verb.add_option("--split-seed", a.splitSeed, "seed of the split");
    verb.add_option("--rows", a.rows, "rows of a part that multiply matrices, or `all`");
    verb.add_option("--phase", a.phase, "prefill, decode or both");
    verb.add_option("--skip-positions", a.skipPositions, "positions left out, comma separated");
    verb.add_option("--skip-ids", a.skipIds, "token ids left out, comma separated");
    verb.add_flag("--no-bos", a.noBos, "the same as --skip-positions 0");
}

void addExplicitRows(App &verb, Arguments &a)
{
    verb.add_option("--fit-rows", a.fitRows, "rows A:B[,C:D] of the file that fit");
    verb.add_option("--score-rows", a.scoreRows, "rows A:B[,C:D] of the file that score");
}

void addFile(App &verb, Arguments &a, const char *name, int count = 1)
{
    verb.add_option(name, a.files, "input")->required()->expected(count);
}

void addSpecs(App &verb, Arguments &a)
{
    verb.add_option("--act", a.act, "quantizer of activations, e.g. int8:token");
    verb.add_option("--weight", a.weight, "quantizer of weights, e.g. int8:row");
    verb.add_option("--kv", a.kv, "quantizer of keys and values");
}

void addCandidateFlags(App &verb, Arguments &a)
{
    addFile(verb, a, "FILE");
    verb.add_option("--weights", a.weights, "checkpoint: a file, a folder, HDF5");
    verb.add_option("--edge", a.edges, "edge name or glob")->required()->expected(1)->take_all();
    verb.add_option("--method", a.method, "method, or a chain A+B")->required();
    verb.add_option("--set", a.sets, "NAME=VALUE of a method parameter")->expected(1)->take_all();
    addSpecs(verb, a);
    verb.add_flag("--preview", a.preview);
    verb.add_flag("--breakdown", a.breakdown);
    verb.add_flag("--refit", a.refit);
    verb.add_flag("--partial", a.partial);
    addRowFlags(verb, a);
    addExplicitRows(verb, a);
}

void addExplorerVerbs(App &app, Arguments &a)
{
    App *diff = app.add_subcommand("diff", "two dumps side by side, edge by edge");
    addFile(*diff, a, "A B", 2);
    diff->add_option("--edge", a.edges)->expected(1)->take_all();
    diff->add_option("--csv", a.csv);

    App *intervene = app.add_subcommand("intervene", "change something, measure what becomes of the output");
    addFile(*intervene, a, "FILE");
    intervene->add_option("--weights", a.weights);
    intervene->add_option("--edge", a.edges)->required()->expected(1)->take_all();
    intervene->add_option("--target", a.target, "channels:3,247 tokens:0 positions:0 value:R,C weight:NAME,J,K finding:ID")->required();
    intervene->add_option("--action", a.action, "zero, mean, clip=V, preserve, isolate or write_back")->required();
    intervene->add_option("--control", a.control, "random targets beside it");
    intervene->add_option("--part", a.interventionPart, "held_out, calibration or all");
    intervene->add_option("--act", a.act);
    intervene->add_option("--weight", a.weight);
    addRowFlags(*intervene, a);
}

void addDataVerbs(App &app, Arguments &a)
{
    App *info = app.add_subcommand("info", "what a file holds");
    addFile(*info, a, "FILE");
    info->add_option("--weights", a.weights);
    info->add_flag("--names", a.names, "print the mapping of names");

    App *analyze = app.add_subcommand("analyze", "statistics and findings of every edge");
    addFile(*analyze, a, "FILE");
    analyze->add_option("--weights", a.weights);
    analyze->add_option("--edge", a.edges)->expected(1)->take_all();
    analyze->add_option("--tau", a.tau);
    analyze->add_option("--part", a.part, "calibration, held_out or all");
    analyze->add_option("--rule", a.rules, "KIND.NAME=VALUE")->expected(1)->take_all();
    analyze->add_option("--arrays", a.arrays, "all, channel or none");
    analyze->add_flag("--sensitivity", a.sensitivity);
    analyze->add_flag("--attention", a.attention);
    analyze->add_option("--join", a.join);
    analyze->add_option("--csv", a.csv, "folder for CSV files");
    analyze->add_option("--save-stats", a.saveStats);
    addSpecs(*analyze, a);
    addRowFlags(*analyze, a);

    App *merge = app.add_subcommand("merge", "merge saved statistics");
    merge->add_option("STATS", a.files)->required()->expected(1, 100000);
    merge->add_option("--save-stats", a.saveStats);
    addExplorerVerbs(app, a);

    App *quantize = app.add_subcommand("quantize", "one tensor through one quantizer");
    addFile(*quantize, a, "FILE");
    quantize->add_option("--tensor", a.tensor)->required();
    quantize->add_option("--rows", a.quantizeRows, "rows A:B");
    quantize->add_option("--spec", a.spec)->required();
    quantize->add_option("--calibration-rows", a.calibrationRows, "rows A:B of static ranges");

}

void addEvaluateVerbs(App &app, Arguments &a)
{
    App *evaluate = app.add_subcommand("evaluate", "fit one candidate on calibration rows, score it on held-out rows");
    addCandidateFlags(*evaluate, a);

    App *sweep = app.add_subcommand("sweep", "evaluate over a grid of one parameter");
    addCandidateFlags(*sweep, a);
    sweep->add_option("--param", a.param)->required();
    sweep->add_option("--from", a.from);
    sweep->add_option("--to", a.until);
    sweep->add_option("--step", a.step);
    sweep->add_option("--values", a.values);
    sweep->add_option("--csv", a.csv);

    App *compare = app.add_subcommand("compare", "candidates side by side on equal terms");
    addFile(*compare, a, "FILE");
    compare->add_option("--weights", a.weights);
    compare->add_option("--edge", a.edges)->expected(1)->take_all();
    compare->add_option("--candidates", a.candidates);
    compare->add_option("--preset", a.preset);
    compare->add_option("--effort", a.effort, "quick or full");
    compare->add_option("--rank-by", a.rankBy, "auto, pooled or rows");
    compare->add_flag("--ablate", a.ablate);
    compare->add_option("--state", a.state);
    compare->add_option("--csv", a.csv);
    addRowFlags(*compare, a);
    addExplicitRows(*compare, a);
}

void addPlanVerbs(App &app, Arguments &a)
{
    App *plan = app.add_subcommand("plan", "choose per edge and write the manifest");
    addFile(*plan, a, "FILE");
    plan->add_option("--weights", a.weights);
    plan->add_option("--preset", a.preset);
    plan->add_option("--candidates", a.candidates);
    plan->add_option("--effort", a.effort);
    plan->add_option("--choose", a.choose, "lowest, knee or within");
    plan->add_option("--max-online-flops", a.maxOnlineFlops);
    plan->add_option("--max-weight-bits", a.maxWeightBits);
    plan->add_option("--pin", a.pins, "EDGE=NAME")->expected(1)->take_all();
    plan->add_option("--exclude", a.exclude)->expected(1)->take_all();
    plan->add_flag("--streams", a.streams);
    plan->add_flag("--allow-online", a.allowOnline);
    plan->add_flag("--allow-function-change", a.allowFunctionChange);
    plan->add_flag("--accept-joint", a.acceptJoint);
    plan->add_flag("--store-weights", a.storeWeights);
    plan->add_option("--tp", a.tensorParallel);
    plan->add_option("--target", a.target);
    plan->add_option("--state", a.state);
    plan->add_option("--rank-by", a.rankBy);
    plan->add_option("--out", a.out)->required();
    addRowFlags(*plan, a);

    App *check = app.add_subcommand("check", "is the plan legal, are its files the same");
    addFile(*check, a, "PLAN");
    check->add_option("--checkpoint", a.checkpoint);
    check->add_option("--tp", a.tensorParallel);
    check->add_option("--target", a.target);

    App *apply = app.add_subcommand("apply", "fold a plan into a copy of the checkpoint");
    addFile(*apply, a, "PLAN");
    apply->add_option("--checkpoint", a.checkpoint)->required();
    apply->add_option("--out", a.out)->required();
    apply->add_option("--store", a.store, "stored or f64");

    App *verify = app.add_subcommand("verify", "prove on sealed rows that the function did not change");
    addFile(*verify, a, "PLAN FILE", 2);
    verify->add_option("--checkpoint", a.checkpoint)->required();
    verify->add_option("--transformed", a.transformed)->required();




    App *report = app.add_subcommand("report", "one HTML page: data, plan, proof, cost, and the lines that reproduce it");
    addFile(*report, a, "FILE");
    report->add_option("--weights", a.weights);
    report->add_option("--plan", a.plan);
    report->add_option("--comparison", a.comparisons, "what compare --json printed")->expected(1)->take_all();
    report->add_option("--checkpoint", a.checkpoint, "checkpoint whose hashes are checked");
    report->add_option("--out", a.out)->required();
    addRowFlags(*report, a);

    App *python = app.add_subcommand("python", "the bridge to PyTorch: planish_torch.py (apply_plan) and dump.py");
    python->add_option("--out", a.out, "folder")->required();

    App *exported = app.add_subcommand("export", "write a plan's factors for another program into a new folder");
    addFile(*exported, a, "PLAN");
    exported->add_option("--to", a.target, "target key (planish-cli targets)")->required();
    exported->add_option("--out", a.out, "new or empty folder")->required();

    App *synth = app.add_subcommand("synth", "a dump with planted outliers, or a complete tiny model");
    synth->add_option("--out", a.out)->required();
    synth->add_option("--tokens", a.tokens);
    synth->add_option("--channels", a.channels);
    synth->add_option("--layers", a.layers);
    synth->add_flag("--tied", a.tied);
    synth->add_option("--model-out", a.modelOut);
}

void addGlobalFlags(App &app, Arguments &a)
{
    GlobalOptions &g = a.global;
    app.add_flag("--json", a.json, "one JSON object on stdout");
    app.add_option("--backend", g.backend, "cpu, cuda or reference");
    app.add_option("--threads", g.threads, "0 = all cores");
    app.add_option("--seed", g.seed, "seed of methods");
    app.add_option("--machine", g.machineProfile, "machine profile for time estimates");
    app.add_option("--prefill-tokens", g.ledger.prefillTokens);
    app.add_option("--batch", g.ledger.batch);
    app.add_option("--sram", g.ledger.sramKib, "KiB");
    app.add_option("--families", g.familiesDir, "folder of own family files");
    app.add_option("--config", g.config, "config.json of the checkpoint");
    app.add_option("--layout", g.layout, "axis overrides");
    app.add_option("--prefer", a.prefer, "weights or dump");
    app.add_flag("--trust-links", g.open.trustLinks);
    app.add_flag("--no-lock", g.open.noLock);
    app.add_flag("--no-cache", g.noCache);
    app.add_flag("--progress", a.progress);
    app.add_flag("--quiet", a.quiet);
}

std::vector<std::string> optionNames(const App &app)
{
    std::vector<std::string> names;
    for (const CLI::Option *option : app.get_options()) {
        for (const std::string &name : option->get_lnames())
            names.push_back("--" + name);
    }
    return names;
}

std::string joined(const std::vector<std::string> &words)
{
    std::string text;
    for (const std::string &word : words)
        text += (text.empty() ? "" : ", ") + word;
    return text;
}

/// An unknown word: a verb when none was recognised, else a flag of that verb.
tl::unexpected<Error> unknownWord(const App &app, const std::string &word)
{
    const auto chosen = app.get_subcommands();
    if (chosen.empty() && !word.starts_with("-")) {
        std::vector<std::string> verbs;
        for (const App *verb : app.get_subcommands([](const App *) { return true; }))
            verbs.push_back(verb->get_name());
        return usageError(word, "unknown verb", "one of " + joined(nearestNames(word, verbs)) + " (planish-cli --help lists all)");
    }
    std::vector<std::string> names = optionNames(app);
    if (!chosen.empty()) {
        const auto more = optionNames(*chosen.front());
        names.insert(names.end(), more.begin(), more.end());
    }
    const std::string where = chosen.empty() ? "planish-cli" : chosen.front()->get_name();
    return usageError(word.substr(0, word.find('=')), word.starts_with("-") ? "unknown flag of " + where : "unexpected word after " + where,
                      "a flag such as " + joined(nearestNames(word, names)));
}

/// The first word of the line that looks like a flag and is none: it explains a parse fault better than what it led to.
std::string firstUnknownFlag(const App &app, int argc, const char *const *argv)
{
    std::vector<std::string> known = optionNames(app);
    for (const App *verb : app.get_subcommands()) {
        const auto more = optionNames(*verb);
        known.insert(known.end(), more.begin(), more.end());
    }
    for (int i = 1; i < argc; ++i) {
        const std::string word(argv[i]);
        const std::string flag = word.substr(0, word.find('='));
        if (flag.starts_with("--") && flag.size() > 2 && std::find(known.begin(), known.end(), flag) == known.end())
            return flag;
    }
    return {};
}

std::string unknownIn(const CLI::ParseError &error, const App &app)
{
    for (const App *verb : app.get_subcommands()) {
        for (const std::string &word : verb->remaining())
            return word;
    }
    for (const std::string &word : app.remaining())
        return word;
    return error.what();
}

} // namespace

Expected<std::variant<Arguments, Finished>> parseArguments(int argc, const char *const *argv)
{
    Arguments a;
    a.typed.assign(argv, argv + argc);
    App app("Planish: see outliers, flatten them with an equivalent transform, prove it, hand it over.", "planish-cli");
    app.set_version_flag("--version", "planish-cli " PLANISH_CLI_VERSION);
    app.require_subcommand(1);
    app.fallthrough();
    app.add_option("--family", a.global.family, "family key; overrides what the names say");
    addGlobalFlags(app, a);
    addDataVerbs(app, a);
    addEvaluateVerbs(app, a);
    addPlanVerbs(app, a);
    for (const char *table : {"methods", "formats", "backends", "targets"})
        app.add_subcommand(table, std::string("list the ") + table);
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp &) {
        const auto chosen = app.get_subcommands();
        std::cout << (chosen.empty() ? app.help() : chosen.front()->help());
        return Finished{0};
    } catch (const CLI::CallForVersion &) {
        std::cout << app.version() << '\n';
        return Finished{0};
    } catch (const CLI::ExtrasError &error) {
        return unknownWord(app, unknownIn(error, app));
    } catch (const CLI::ParseError &error) {
        if (const std::string flag = firstUnknownFlag(app, argc, argv); !flag.empty())
            return unknownWord(app, flag);
        if (app.get_subcommands().empty() && argc > 1)
            return unknownWord(app, argv[1]);
        const auto chosen = app.get_subcommands();
        return usageError(chosen.empty() ? "planish-cli" : chosen.front()->get_name(), error.what(), "see `planish-cli --help`");
    }
    a.verb = app.get_subcommands().front()->get_name();
    if (a.prefer == "weights")
        a.global.prefer = Prefer::Weights;
    else if (a.prefer == "dump")
        a.global.prefer = Prefer::Dump;
    else if (!a.prefer.empty())
        return usageError("--prefer " + a.prefer, "unknown choice", "weights or dump");
    return a;
}

} // namespace planish::cli
