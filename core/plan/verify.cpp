#include <algorithm>
#include <filesystem>

#include "core/io/file_key.h"
#include "core/plan/basis.h"
#include "core/plan/hashes.h"
#include "core/plan/plan_weights.h"
#include "core/plan/receipt.h"
#include "core/plan/stored_check.h"
#include "core/plan/verify_edge.h"

namespace planish {

namespace {

using Json = nlohmann::ordered_json;

/// Everything open; whether sealed rows have been read is known even when a later step fails.
struct Session {
    VerifyContext context;
    std::optional<FoldMap> map;
    bool sameDump = false;
    bool sealedRead = false;
};

std::vector<std::int64_t> sealedTokens(const Split &split)
{
    std::vector<std::int64_t> rows;
    for (std::int32_t unit : split.sealed) {
        const auto &tokens = split.units[static_cast<std::size_t>(unit)].tokens;
        rows.insert(rows.end(), tokens.begin(), tokens.end());
    }
    std::sort(rows.begin(), rows.end());
    return rows;
}

/// The split the plan was made with, or every row of another dump.
Expected<void> openRows(Session &session, const Plan &plan, const std::string &dumpFile)
{
    auto hash = sha256OfFile(dumpFile);
    if (!hash)
        return tl::make_unexpected(hash.error());
    session.sameDump = *hash == plan.source.dump.sha256;
    const TokenTable &tokens = session.context.dump->info().tokens;
    auto split = makeSplit(tokens, plan.calibration.request, dumpFile);
    session.context.allRows = !session.sameDump;
    if (!session.sameDump) {
        session.context.split = split ? std::move(*split) : Split{};
        if (session.context.split.units.empty())
            session.context.split.unit = SplitUnit::Explicit; // too few requests for parts; all rows are scored anyway
        session.context.split.request = plan.calibration.request;
        return {};
    }
    if (!split)
        return tl::make_unexpected(split.error());
    session.context.split = std::move(*split);
    const auto promised = plan.calibration.rowsSha256.find("sealed");
    if (promised != plan.calibration.rowsSha256.end() && promised->second != rowsSha256(tokens, sealedTokens(session.context.split)))
        return dataError(dumpFile, "its sealed rows are not those of the plan", "expected rows_sha256.sealed of the plan");
    return {};
}

Expected<void> openAll(Session &session, const Plan &plan, const std::string &dumpFile, const std::string &checkpointIn,
                       const std::string &transformed, const FamilyList &families)
{
    auto dump = openDump(dumpFile, {});
    if (!dump)
        return tl::make_unexpected(dump.error());
    session.context.dump = *dump;
    for (const DumpEdge &edge : (*dump)->info().edges) {
        if (edge.basis != "original")
            return refusal(edge.id.value, "the rows of this dump are in the basis " + edge.basis, "expected rows in the original basis",
                           "basis_already_applied");
    }
    auto in = openForPlan(plan, checkpointIn, families);
    if (!in)
        return tl::make_unexpected(in.error());
    session.context.in = *in;
    auto map = FoldMap::build(plan, *in);
    if (!map)
        return tl::make_unexpected(map.error());
    session.map = std::move(*map);
    if (auto same = checkBasis(plan, *session.map, checkpointIn); !same)
        return same;
    auto out = openForPlan(plan, transformed, families);
    if (!out)
        return tl::make_unexpected(out.error());
    session.context.out = *out;
    for (const Assignment &assignment : plan.assignments) {
        for (auto &fold : producerFolds(assignment, *session.context.in))
            session.context.folds.push_back(std::move(fold));
    }
    return openRows(session, plan, dumpFile);
}

void countRows(RowCounts &counts, const VerifyRows &rows, bool allRows)
{
    counts.calibration = std::max<std::int64_t>(counts.calibration, allRows ? 0 : static_cast<std::int64_t>(rows.calibration.size()));
    if (allRows)
        counts.score = std::max<std::int64_t>(counts.score.value_or(0), static_cast<std::int64_t>(rows.scored.size()));
    else
        counts.sealed = std::max<std::int64_t>(counts.sealed, static_cast<std::int64_t>(rows.scored.size()));
    counts.available = std::max(counts.available, rows.scored.available());
}

/// What the stored producers say goes in front of what the rows say: it names the tensor that is wrong.
void blameProducers(VerifyResult &result, const StoredCheck &stored)
{
    for (VerifyEdge &edge : result.edges) {
        const auto found = stored.byEdge.find(edge.edge.value);
        if (found == stored.byEdge.end())
            continue;
        edge.passed = false;
        edge.reason = found->second.tensor + ": " + found->second.text + (edge.reason.empty() ? "" : "; " + edge.reason);
    }
}

Expected<VerifyResult> verifyOpened(Session &session, const Plan &plan, std::stop_token stop, const ProgressSink &progress)
{
    VerifyResult result;
    auto stored = checkStored(plan, *session.map, *session.context.out->checkpoint());
    if (!stored)
        return tl::make_unexpected(stored.error());
    result.changedTensors = stored->changed;
    for (const Assignment &assignment : plan.assignments) {
        if (stop.stop_requested())
            return cancelled(assignment.edge.value);
        if (progress)
            progress({.stage = "verify", .done = static_cast<double>(result.edges.size()), .total = static_cast<double>(plan.assignments.size()),
                      .unit = "edges"});
        const DumpEdge *dumpEdge = session.context.dump->info().findEdge(assignment.edge);
        if (!dumpEdge) {
            VerifyEdge absent;
            absent.edge = assignment.edge;
            absent.reason = "this edge is not in the dump";
            result.edges.push_back(std::move(absent));
            continue;
        }
        auto rows = loadVerifyRows(session.context, *dumpEdge);
        if (!rows)
            return tl::make_unexpected(rows.error());
        session.sealedRead = session.sealedRead || session.sameDump;
        countRows(result.rows, *rows, session.context.allRows);
        auto edge = verifyEdge(session.context, assignment, *dumpEdge, *rows, stop);
        if (!edge)
            return tl::make_unexpected(edge.error());
        result.edges.push_back(std::move(*edge));
    }
    blameProducers(result, *stored);
    result.passed = result.changedTensors.empty() && std::all_of(result.edges.begin(), result.edges.end(), [](const VerifyEdge &e) { return e.passed; });
    return result;
}

Json runEntry(const std::string &dumpFile, const std::string &transformed, const Session &session, const Expected<VerifyResult> &result)
{
    Json run = {{"time", utcNow()},
                {"dump", std::filesystem::path(dumpFile).filename().string()},
                {"transformed", std::filesystem::path(transformed).filename().string()},
                {"rows", session.sameDump ? "sealed rows" : "rows of another dump"},
                {"passed", result && result->passed}};
    if (result) {
        run["count"] = session.sameDump ? result->rows.sealed : result->rows.score.value_or(0);
        run["failed_edges"] = Json::array();
        for (const VerifyEdge &edge : result->edges) {
            if (!edge.passed)
                run["failed_edges"].push_back(edge.edge.value);
        }
    } else {
        run["error"] = toText(result.error());
    }
    return run;
}

} // namespace

Expected<VerifyResult> verifyPlan(const std::string &planFile, const Plan &plan, const std::string &dumpFile, const std::string &checkpointIn,
                                  const std::string &transformed, const FamilyList &families, std::shared_ptr<const Backend> backend,
                                  std::stop_token stop, const ProgressSink &progress)
{
    Session session;
    session.context.plan = &plan;
    session.context.backend = std::move(backend);
    session.context.families = families;
    if (auto opened = openAll(session, plan, dumpFile, checkpointIn, transformed, families); !opened)
        return tl::make_unexpected(opened.error());
    auto result = verifyOpened(session, plan, stop, progress);
    auto opened = appendVerifyRun(planFile, runEntry(dumpFile, transformed, session, result), session.sealedRead);
    if (!result)
        return result;
    if (!opened)
        return tl::make_unexpected(opened.error());
    result->opened = *opened;
    return result;
}

} // namespace planish
