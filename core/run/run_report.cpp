#include "core/run/run_report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/io/atomic_file.h"
#include "core/io/file_key.h"
#include "core/plan/manifest.h"
#include "core/plan/receipt.h"
#include "core/report/comparison_file.h"
#include "core/run/envelope.h"
#include "core/run/report_commands.h"
#include "core/run/report_proof.h"

namespace planish {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::uintmax_t kHashLimit = std::uintmax_t(1) << 30; // as `info`: larger files are hashed by `plan` only

struct Gather {
    const Engine &engine;
    const Opened &opened;
    const ReportRequest &request;
    std::stop_token stop;
    const ProgressSink &progress;
    ReportContent content;
    RowRequest rows;
    EvaluateOptions options;
};

std::string baseName(const std::string &path)
{
    const fs::path file(path);
    return (file.has_filename() ? file : file.parent_path()).filename().string();
}

ReportFile fileOf(const std::string &role, const std::string &path, std::stop_token stop)
{
    ReportFile file{.role = role, .name = baseName(path)};
    std::error_code code;
    if (fs::is_directory(path, code)) {
        file.note = "a folder; its files are hashed in the plan";
        return file;
    }
    file.bytes = fs::file_size(path, code);
    if (code || file.bytes > kHashLimit) {
        file.bytes = code ? 0 : file.bytes;
        file.note = code ? "not readable" : "above 1 GiB: not hashed here";
        return file;
    }
    if (auto hash = sha256OfFile(path, stop))
        file.sha256 = *hash;
    else
        file.note = "not hashed";
    return file;
}

ReportEdge reportEdge(const EdgeAnalysis &analysis)
{
    const Statistics &s = *analysis.statistics;
    return {.edge = analysis.edge,
            .layer = analysis.layer,
            .site = analysis.site,
            .dtype = analysis.dtype,
            .tokens = s.tokens,
            .channels = s.channels,
            .maxAbs = s.maxAbs,
            .medianAbs = s.medianAbs,
            .maxToMedian = s.maxToMedian(),
            .c1 = analysis.concentration.c1,
            .c1pct = analysis.concentration.c1pct,
            .meanIncoherence = s.meanIncoherence(),
            .argmaxRow = s.argmaxRow,
            .argmaxChannel = s.argmaxChannel,
            .findings = analysis.findings};
}

Expected<void> addAnalysis(Gather &g)
{
    AnalyzeRequest request;
    request.rows = g.rows;
    auto analysis = g.engine.analyze(g.opened, request, g.stop, g.progress);
    if (!analysis)
        return tl::make_unexpected(analysis.error());
    for (const EdgeAnalysis &edge : analysis->edges)
        g.content.edges.push_back(reportEdge(edge));
    g.content.systematic = analysis->systematic;
    g.content.notes = analysis->notes;
    for (const Error &failure : analysis->failures)
        g.content.notes.push_back(toText(failure));
    g.content.data["analysis"] = toJson(*analysis, ArrayDetail::None);
    return {};
}

Expected<void> addPlan(Gather &g)
{
    const std::string &file = g.request.planFile;
    if (file.empty())
        return {};
    auto plan = readPlan(file);
    if (!plan)
        return tl::make_unexpected(plan.error());
    g.content.planFile = baseName(file);
    g.content.files.push_back(fileOf("plan", file, g.stop));
    g.content.ledger = ledgerOf(*plan, g.request.machine ? &*g.request.machine : nullptr);
    const std::string checkpoint =
        g.request.checkpoint.empty() && !plan->source.checkpoint.empty() ? g.request.weights : g.request.checkpoint;
    auto check = checkPlan(file, *plan, checkpoint, plan->tensorParallel, plan->target, g.opened.families);
    if (!check)
        return tl::make_unexpected(check.error());
    // The dump at hand was hashed already, wherever it lies.
    if (const ReportFile &dump = g.content.files.front(); check->hashes[plan->source.dump.file] == "unchecked" && !dump.sha256.empty())
        check->hashes[plan->source.dump.file] = dump.sha256 == plan->source.dump.sha256 ? "passed" : "unchecked";
    g.content.check = *check;
    g.content.data["check"] = toJson(*check);
    SideTensors side;
    g.content.data["plan"] = manifestJson(*plan, side);
    g.content.data["ledger"] = ledgerJson(*g.content.ledger);
    g.rows = plan->calibration.request;
    g.rows.splitSeed = plan->calibration.splitSeed;
    g.rows.skipPositions = plan->calibration.skippedPositions;
    g.content.plan = std::move(*plan);
    return {};
}

void addVerifyLog(Gather &g)
{
    if (!g.content.plan)
        return;
    std::ifstream in(verifyLogName(g.request.planFile), std::ios::binary);
    const Json log = in ? Json::parse(in, nullptr, false) : Json();
    if (!log.is_object() || !log.contains("runs") || !log["runs"].is_array())
        return;
    if (log.contains("opened") && log["opened"].is_number_integer())
        g.content.sealedOpened = log["opened"].get<std::int64_t>();
    const auto text = [](const Json &run, const char *key) {
        return run.contains(key) && run[key].is_string() ? run[key].get<std::string>() : std::string();
    };
    for (const Json &run : log["runs"]) {
        if (!run.is_object())
            continue;
        const bool passed = run.contains("passed") && run["passed"].is_boolean() && run["passed"].get<bool>();
        g.content.verify.push_back(
            {text(run, "time"), passed ? "passed" : "failed", text(run, "rows") + ", " + text(run, "transformed")});
    }
    g.content.data["verify"] = log["runs"];
}

CandidateMark markOf(const ChoiceEntry &entry, bool chosen)
{
    CandidateMark mark{.name = entry.name,
                       .note = entry.reason,
                       .value = entry.relativeFrobenius,
                       .low = entry.low,
                       .high = entry.high,
                       .cost = entry.onlineFlops,
                       .tie = entry.tie,
                       .chosen = chosen,
                       .usable = entry.status == "ok"};
    if (mark.note == "online")
        mark.note = "leaves an online operator; --allow-online was not given";
    else if (mark.note == "analysis_only") {
        mark.note = "for analysis only, no runtime multiplies with it";
        mark.cost.reset();
    }
    return mark;
}

void addChoices(Gather &g)
{
    if (!g.content.plan)
        return;
    for (const ChoiceLog &log : g.content.plan->choices) {
        ReportDecision decision{.edge = log.edge, .rule = log.rule, .source = "the plan's choice log"};
        std::string chosen;
        for (const Assignment &a : g.content.plan->assignments)
            chosen = a.edge == log.edge ? a.candidate.name : chosen;
        for (const ChoiceEntry &entry : log.candidates)
            decision.candidates.push_back(markOf(entry, entry.name == chosen && entry.status == "ok"));
        g.content.decisions.push_back(std::move(decision));
    }
}

Expected<void> addComparisons(Gather &g)
{
    for (const std::string &file : g.request.comparisons) {
        auto comparison = readComparisonFile(file);
        if (!comparison)
            return tl::make_unexpected(comparison.error());
        g.content.files.push_back(fileOf("comparison", file, g.stop));
        for (ReportDecision &decision : comparison->decisions)
            g.content.decisions.push_back(std::move(decision));
        for (const std::string &sentence : comparison->skipped)
            g.content.notes.push_back(sentence);
        g.content.data["comparisons"].push_back(std::move(comparison->json));
    }
    return {};
}

Expected<void> addProofs(Gather &g)
{
    if (!g.content.plan)
        return {};
    g.content.data["measured"] = Json::array();
    const Plan &plan = *g.content.plan;
    for (std::size_t i = 0; i < plan.assignments.size(); ++i) {
        const Assignment &a = plan.assignments[i];
        if (a.edge.value.empty())
            continue;
        if (g.stop.stop_requested())
            return cancelled("report");
        if (g.progress)
            g.progress({.stage = "report", .done = double(i), .total = double(plan.assignments.size()), .unit = "edges"});
        auto proof = proveEdge(g.engine, g.opened, a, g.options, g.stop);
        if (!proof)
            return tl::make_unexpected(proof.error());
        proof->commands = {evaluateLine(a, g.opened.dump->info().file, g.request.weights, g.rows)};
        if (proof->evaluation)
            g.content.data["measured"].push_back(toJson(*proof->evaluation));
        g.content.proofs.push_back(std::move(*proof));
    }
    return {};
}

/// Identity's damage per edge from what is at hand: the plan's identity block, which names rows and outputs.
void addDamage(Gather &g)
{
    if (!g.content.plan)
        return;
    for (const Assignment &a : g.content.plan->assignments) {
        const auto edge =
            std::find_if(g.content.edges.begin(), g.content.edges.end(), [&](const ReportEdge &e) { return e.edge == a.edge; });
        if (edge == g.content.edges.end() || !a.identity || edge->channels == 0 || a.weightElements == 0)
            continue;
        const auto rows = static_cast<double>(g.content.plan->calibration.heldOutRows);
        const double outputs = static_cast<double>(a.weightElements) / static_cast<double>(edge->channels);
        edge->relative = a.identity->relativeFrobenius;
        edge->damage = std::sqrt(a.identity->mse * rows * outputs);
        g.content.specsText =
            canonicalText(a.candidate.act, Role::Activation) + " / " + canonicalText(a.candidate.weight, Role::Weight);
    }
}

void addSplit(Gather &g)
{
    ReportContent &c = g.content;
    auto split = makeSplit(g.opened.dump->info().tokens, g.rows, g.opened.dump->info().file);
    c.splitText = !split ? "no split" : std::string("split by ") + (split->unit == SplitUnit::Block ? "block" : "request");
    if (split)
        c.notes.insert(c.notes.end(), split->notes.begin(), split->notes.end());
    if (c.plan) {
        const PlanCalibration &p = c.plan->calibration;
        c.rows = {p.rows, p.validationRows, p.heldOutRows, p.sealedRows, p.availableRows, {}, {}};
        return;
    }
    if (!split)
        return;
    const auto count = [&](const std::vector<std::int32_t> &units) {
        std::int64_t rows = 0;
        for (const std::int32_t unit : units)
            rows += static_cast<std::int64_t>(split->units[static_cast<std::size_t>(unit)].tokens.size());
        return rows;
    };
    c.rows = {count(split->calibration), count(split->validation), count(split->heldOut), count(split->sealed), 0, {}, {}};
    c.rows.available = c.rows.calibration + c.rows.heldOut + c.rows.sealed;
}

void addCommands(Gather &g)
{
    ReportContent &c = g.content;
    const std::string file = g.opened.dump->info().file, files = fileFlags(file, g.request.weights);
    c.commands.push_back("planish-cli analyze " + files + rowFlagsOf(g.rows));
    if (c.plan) {
        const std::string plan = shellWord(g.request.planFile);
        if (!c.plan->command.empty())
            c.commands.push_back(c.plan->command);
        c.commands.push_back("planish-cli check " + plan +
                             (g.request.weights.empty() ? "" : " --checkpoint " + shellWord(g.request.weights)));
        if (!g.request.weights.empty()) {
            c.commands.push_back("planish-cli apply " + plan + " --checkpoint " + shellWord(g.request.weights) + " --out OUT");
            c.commands.push_back("planish-cli verify " + plan + " " + shellWord(file) + " --checkpoint " +
                                 shellWord(g.request.weights) + " --transformed OUT");
        }
    }
    std::string line = "planish-cli report " + files;
    if (c.plan)
        line += " --plan " + shellWord(g.request.planFile);
    for (const std::string &comparison : g.request.comparisons)
        line += " --comparison " + shellWord(comparison);
    c.commands.push_back(line + " --out " + shellWord(g.request.out));
}

void warnOfOtherDump(Gather &g)
{
    if (!g.content.plan)
        return;
    const std::string &stated = g.content.plan->source.dump.sha256;
    for (const ReportFile &file : g.content.files) {
        if (file.role == "dump" && !file.sha256.empty() && !stated.empty() && file.sha256 != stated)
            g.content.notes.insert(g.content.notes.begin(),
                                   file.name +
                                       " is not the dump the plan was made from: numbers measured again are those of other rows");
    }
}

} // namespace

Expected<ReportContent> gatherReport(const Engine &engine, const Opened &opened, const ReportRequest &request,
                                     std::stop_token stop, const ProgressSink &progress)
{
    Gather g{engine, opened, request, stop, progress, {}, request.rows, {}};
    const DumpInfo &dump = opened.dump->info();
    g.content.title = "Planish report: " + (dump.model.model.empty() ? baseName(dump.file) : dump.model.model);
    g.content.version = PLANISH_VERSION;
    g.content.backend = engine.backend()->info().key;
    g.content.created = utcNow();
    g.content.data = {{"schema", "planish.report/1"}, {"version", g.content.version}, {"file", baseName(dump.file)}};
    g.content.files.push_back(fileOf("dump", dump.file, stop));
    if (!request.weights.empty())
        g.content.files.push_back(fileOf("weights", request.weights, stop));
    if (auto plan = addPlan(g); !plan)
        return tl::make_unexpected(plan.error());
    g.options.rows = g.rows;
    g.options.ledger = engine.global().ledger;
    for (const auto step : {addAnalysis, addProofs}) {
        if (auto done = step(g); !done)
            return tl::make_unexpected(done.error());
    }
    addSplit(g);
    addVerifyLog(g);
    addChoices(g);
    if (auto done = addComparisons(g); !done)
        return tl::make_unexpected(done.error());
    addDamage(g);
    warnOfOtherDump(g);
    addCommands(g);
    g.content.data["commands"] = g.content.commands;
    return std::move(g.content);
}

Expected<std::vector<std::string>> runReport(const Engine &engine, const Opened &opened, const ReportRequest &request,
                                             std::stop_token stop, const ProgressSink &progress)
{
    auto content = gatherReport(engine, opened, request, stop, progress);
    if (!content)
        return tl::make_unexpected(content.error());
    if (auto written = writeFileAtomically(request.out, reportHtml(*content)); !written)
        return tl::make_unexpected(written.error());
    return std::vector<std::string>{request.out};
}

} // namespace planish
