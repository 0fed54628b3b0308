// The verb `analyze`: statistics and findings of every edge asked for, phases apart, systematic dimensions over all layers.
#include <algorithm>
#include <cmath>

#include "core/geometry/analysis_units.h"
#include "core/geometry/edge_weights.h"
#include "core/io/file_key.h"
#include "core/measure/statistics_file.h"
#include "core/run/engine.h"
#include "core/run/run_sensitivity.h"

namespace planish {

namespace {

constexpr double kSystematicTau = 6.0;     // the LLM.int8 rule, whatever --tau says
constexpr std::size_t kFewDecodeRows = 64; // evaluation.md 2: below this a note

struct Run {
    const Opened &opened;
    const AnalyzeRequest &request;
    const RuleThresholds &rules;
    const Split *split = nullptr; ///< null when the dump cannot be split
    std::uint64_t seed = 0;
    std::stop_token stop;
    const TokenTable &tokens() const { return opened.dump->info().tokens; }
};

bool isInput(const Edge &edge)
{
    return edge.site == "attn_in" || edge.site == "mlp_in";
}

std::vector<std::int64_t> rowsFor(const Run &run, const DumpEdge &edge)
{
    auto rows = run.request.part == Part::All ? countedRows(run.tokens(), edge, run.request.rows)
                                              : rowsOfPart(*run.split, run.tokens(), edge, run.request.part);
    std::sort(rows.begin(), rows.end());
    return rows;
}

StatisticsRequest statisticsRequest(const Run &run, const Edge &edge)
{
    StatisticsRequest request;
    request.tau = run.request.tau;
    const double persistent = run.rules("persistent_channel.threshold");
    if (persistent != request.tau)
        request.thresholds.push_back(persistent);
    if (isInput(edge) && kSystematicTau != request.tau && kSystematicTau != persistent)
        request.thresholds.push_back(kSystematicTau);
    return request;
}

// Rows of each phase when both occur; the figures of one phase alone are those of the edge.
Expected<void> addPhases(const Run &run, const DumpEdge &dumpEdge, const std::vector<std::int64_t> &rows, EdgeAnalysis &edge)
{
    const auto &phase = run.tokens().phase;
    std::vector<std::int64_t> part[2];
    for (std::int64_t row : rows) {
        const auto token = static_cast<std::size_t>(tokenOfRow(dumpEdge, row));
        part[token < phase.size() && phase[token] != 0].push_back(row);
    }
    if (part[0].empty() || part[1].empty())
        return {};
    StatisticsRequest request;
    request.tau = run.request.tau;
    const char *names[] = {"prefill", "decode"};
    for (int p : {0, 1}) {
        auto statistics = computeStatistics(*run.opened.dump, dumpEdge, part[p], request, run.stop);
        if (!statistics)
            return tl::make_unexpected(statistics.error());
        edge.phases.emplace_back(names[p], std::make_shared<const Statistics>(std::move(*statistics)));
    }
    if (part[1].size() < kFewDecodeRows)
        edge.notes.push_back("only " + std::to_string(part[1].size()) + " decode rows; figures of the decode phase need " +
                             std::to_string(kFewDecodeRows));
    return {};
}

void noteMissing(const EdgeWeights &weights, EdgeAnalysis &edge)
{
    if (weights.missing.empty() || weights.energy.empty())
        return;
    std::string names;
    for (const std::string &name : weights.missing)
        names.append(names.empty() ? "" : ", ").append(name);
    edge.notes.push_back("no weights for " + names +
                         "; weight_max, weight_energy and rules on weights cover the other consumers");
}

Expected<void> addFindings(const Run &run, const Edge &graphEdge, const Statistics &statistics, EdgeAnalysis &edge)
{
    auto weights = scanEdgeWeights(run.opened, graphEdge, statistics, run.rules, run.request.rows, run.stop);
    if (!weights && weights.error().code != ErrorCode::Data)
        return tl::make_unexpected(weights.error());
    if (!weights) {
        // Geometry needs only X: a weight that cannot be read costs the rules on weights, not the edge.
        edge.notes.push_back("rules on weights left out: " + toText(weights.error()));
        weights = EdgeWeights{};
    }
    noteMissing(*weights, edge);
    edge.weightMax = weights->maxAbs;
    edge.weightEnergy = weights->energy;
    if (!run.request.findings)
        return {};
    auto findings = findOn(run.opened, graphEdge, statistics, run.rules, run.request.rows, run.stop, &*weights, run.seed);
    if (!findings)
        return tl::make_unexpected(findings.error());
    edge.findings = std::move(*findings);
    return {};
}

Expected<EdgeAnalysis> analyzeEdge(const Run &run, const Edge &graphEdge)
{
    const DumpEdge *dumpEdge = run.opened.dump->info().findEdge(graphEdge.id);
    if (!dumpEdge)
        return dataError(graphEdge.id.value, "the dump has no such edge", "an edge listed by info");
    EdgeAnalysis edge;
    edge.edge = graphEdge.id;
    edge.layer = graphEdge.layer;
    edge.site = graphEdge.site;
    edge.dtype = std::string(nameOf(dumpEdge->storedType));
    const auto rows = rowsFor(run, *dumpEdge);
    StatisticsRequest request = statisticsRequest(run, graphEdge);
    AnalysisUnits units;
    if (run.split && run.request.findings)
        units = analysisUnits(*run.split, *dumpEdge, rows);
    askForUnits(units, request);
    auto statistics = computeStatistics(*run.opened.dump, *dumpEdge, rows, request, run.stop);
    if (!statistics)
        return tl::make_unexpected(statistics.error());
    markCalibration(units, *statistics);
    if (auto done = addFindings(run, graphEdge, *statistics, edge); !done)
        return tl::make_unexpected(done.error());
    // Units serve the bootstrap only; kept for every edge they would outgrow everything else.
    statistics->units = {};
    statistics->rowUnit = {};
    edge.concentration = concentrationOf(*statistics);
    edge.statistics = std::make_shared<const Statistics>(std::move(*statistics));
    if (auto done = addPhases(run, *dumpEdge, rows, edge); !done)
        return tl::make_unexpected(done.error());
    return edge;
}

// Only over all layers does a fraction of the layers mean anything.
void addSystematic(const ModelGraph &graph, Analysis &analysis)
{
    std::vector<std::pair<std::int64_t, const Statistics *>> inputs;
    for (const EdgeAnalysis &edge : analysis.edges)
        if (edge.site == "attn_in" || edge.site == "mlp_in")
            inputs.emplace_back(edge.layer, edge.statistics.get());
    const auto all = static_cast<std::size_t>(std::count_if(graph.edges.begin(), graph.edges.end(), isInput));
    if (inputs.size() == all)
        analysis.systematic = systematicDimensions(inputs, kSystematicTau);
    else if (!inputs.empty())
        analysis.notes.push_back("systematic_dimensions needs every attn_in and mlp_in edge; " + std::to_string(inputs.size()) +
                                 " of " + std::to_string(all) + " were analyzed");
}

Expected<void> save(const Opened &opened, const AnalyzeRequest &request, const Analysis &analysis)
{
    auto key = fileIdentity(opened.dump->info().file);
    if (!key)
        return tl::make_unexpected(key.error());
    StatisticsFile file{opened.dump->info().file, *key,         request.tau, request.rows.phase, request.rows.skipPositions,
                        request.rows.skipIds,     request.part, {}};
    for (const EdgeAnalysis &edge : analysis.edges)
        file.edges.push_back({edge.edge, edge.layer, edge.site, edge.dtype, *edge.statistics});
    return saveStatistics(request.saveStats, file);
}

void noteSkips(const RowRequest &rows, Analysis &analysis)
{
    if (rows.skipPositions.empty())
        return;
    std::string positions;
    for (std::int32_t position : rows.skipPositions)
        positions.append(positions.empty() ? " " : ",").append(std::to_string(position));
    analysis.notes.push_back("skip-positions" + positions);
}

Expected<void> analyzeEdges(const Run &run, const std::vector<EdgeId> &ids, const ProgressSink &progress, Analysis &analysis)
{
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (run.stop.stop_requested())
            return cancelled(analysis.file);
        if (progress)
            progress(
                {.stage = "analyze", .done = static_cast<double>(i), .total = static_cast<double>(ids.size()), .unit = "edges"});
        auto edge = analyzeEdge(run, *run.opened.graph.find(ids[i]));
        if (edge)
            analysis.edges.push_back(std::move(*edge));
        else if (edge.error().code == ErrorCode::Data)
            analysis.failures.push_back(edge.error());
        else
            return tl::make_unexpected(edge.error());
    }
    if (analysis.edges.empty() && !analysis.failures.empty())
        return tl::make_unexpected(analysis.failures.front());
    return {};
}

} // namespace

Expected<Analysis> Engine::analyze(const Opened &opened, const AnalyzeRequest &request, std::stop_token stop,
                                   const ProgressSink &progress) const
{
    if (!std::isfinite(request.tau) || request.tau < 0.0)
        return usageError("--tau", "it is not a threshold", "a finite number, not negative");
    auto rules = parseRules(request.rules);
    if (!rules)
        return tl::make_unexpected(rules.error());
    auto ids = matchEdges(opened.graph, request.edges);
    if (!ids)
        return tl::make_unexpected(ids.error());
    Analysis analysis;
    analysis.file = opened.dump->info().file;
    for (const RefusedObject &object : opened.dump->info().refused)
        analysis.notes.push_back(object.path + ": " + object.reason);
    Run run{opened, request, *rules, nullptr, m_global.seed, stop};
    auto split = makeSplit(opened.dump->info().tokens, request.rows, analysis.file);
    if (split)
        run.split = &*split;
    else if (request.part != Part::All || split.error().code == ErrorCode::Usage)
        return tl::make_unexpected(split.error());
    else if (request.findings)
        analysis.notes.push_back("findings carry no stability: " + toText(split.error()));
    noteSkips(request.rows, analysis);
    if (auto done = analyzeEdges(run, *ids, progress, analysis); !done)
        return tl::make_unexpected(done.error());
    addSystematic(opened.graph, analysis);
    if (request.sensitivity) {
        if (auto done = addSensitivity(*this, opened, request, analysis, stop, progress); !done)
            return tl::make_unexpected(done.error());
    }
    if (!request.saveStats.empty()) {
        if (auto saved = save(opened, request, analysis); !saved)
            return tl::make_unexpected(saved.error());
    }
    return analysis;
}

} // namespace planish
