// JSON of plan, check, apply and verify. cli.md "JSON".
#include <cmath>

#include "core/plan/plan_ledger.h"
#include "core/run/envelope.h"

namespace planish {

namespace {

using Json = nlohmann::ordered_json;

Json numberOrNull(double value)
{
    return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json textOrNull(const std::string &text)
{
    return text.empty() ? Json(nullptr) : Json(text);
}

Json blockOrNull(const std::optional<OutputBlock> &block)
{
    return block ? outputJson(*block) : Json(nullptr);
}

const char *severityName(Refusal::Severity severity)
{
    return severity == Refusal::Severity::Error ? "error" : severity == Refusal::Severity::Warning ? "warning" : "note";
}

Json rowsJson(const RowCounts &rows)
{
    Json json = {{"calibration", rows.calibration}, {"sealed", rows.sealed}, {"available", rows.available}};
    if (rows.score)
        json["another_dump"] = *rows.score;
    return json;
}

} // namespace

nlohmann::ordered_json toJson(const ApplyResult &result)
{
    return {{"schema", "planish.apply/1"},
            {"out", result.out},
            {"tensors_rewritten", result.tensorsRewritten},
            {"tensors_copied", result.tensorsCopied},
            {"basis_in", result.basisIn},
            {"basis_out", result.basisOut},
            {"seconds", result.seconds}};
}

nlohmann::ordered_json toJson(const VerifyResult &result)
{
    Json edges = Json::array();
    for (const VerifyEdge &edge : result.edges) {
        edges.push_back({{"edge", edge.edge.value},
                         {"stored_relative_frobenius", numberOrNull(edge.storedRelativeFrobenius)},
                         {"threshold", numberOrNull(edge.threshold)},
                         {"promised", numberOrNull(edge.promised)},
                         {"sealed", {{"output", blockOrNull(edge.sealed)}}},
                         {"identity_sealed", {{"output", blockOrNull(edge.identitySealed)}}},
                         {"passed", edge.passed},
                         {"reason", textOrNull(edge.reason)}});
    }
    return {{"schema", "planish.verify/1"},      {"passed", result.passed},
            {"opened", result.opened},           {"rows", rowsJson(result.rows)},
            {"edges", std::move(edges)},         {"changed_tensors", result.changedTensors},
            {"notes", {"sealed rows opened " + std::to_string(result.opened) + " times"}}};
}

nlohmann::ordered_json toJson(const CheckResult &result)
{
    Json findings = Json::array();
    for (const CheckFinding &finding : result.findings) {
        findings.push_back({{"edge", finding.edge},
                            {"rule", finding.rule},
                            {"other", textOrNull(finding.other)},
                            {"sentence", finding.sentence},
                            {"severity", severityName(finding.severity)}});
    }
    return {{"schema", "planish.check/1"}, {"legal", result.legal}, {"findings", std::move(findings)}, {"hashes", result.hashes}};
}

nlohmann::ordered_json plannedJson(const Plan &plan, const std::string &out, const std::vector<std::string> &files, const MachineProfile *machine)
{
    Json edges = Json::array();
    for (const Assignment &assignment : plan.assignments) {
        edges.push_back({{"edge", assignment.edge.value},
                         {"chosen", assignment.candidate.name},
                         {"status", assignment.status},
                         {"reason", textOrNull(assignment.reason)},
                         {"alone", blockOrNull(assignment.alone)},
                         {"joint", blockOrNull(assignment.joint)},
                         {"notes", assignment.notes}});
    }
    return {{"schema", "planish.planned/1"}, {"out", out},           {"files", files}, {"edges", std::move(edges)},
            {"streams", Json::array()},      {"ledger", ledgerJson(ledgerOf(plan, machine))}, {"notes", plan.notes}};
}

} // namespace planish
