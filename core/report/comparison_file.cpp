#include "core/report/comparison_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

namespace planish {

namespace {

using Json = nlohmann::ordered_json;

std::string textAt(const Json &json, const char *key)
{
    const auto found = json.is_object() ? json.find(key) : json.end();
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// A missing key on the way is an absent number, not a fault.
std::optional<double> numberAt(const Json &json, std::initializer_list<const char *> keys)
{
    const Json *at = &json;
    for (const char *key : keys) {
        if (!at->is_object() || !at->contains(key))
            return std::nullopt;
        at = &(*at)[key];
    }
    if (!at->is_number() || !std::isfinite(at->get<double>()))
        return std::nullopt;
    return at->get<double>();
}

CandidateMark markOf(const Json &evaluation)
{
    CandidateMark mark;
    mark.name = textAt(evaluation, "candidate");
    mark.value = numberAt(evaluation, {"output", "relative_frobenius"});
    mark.low = numberAt(evaluation, {"uncertainty", "low"});
    mark.high = numberAt(evaluation, {"uncertainty", "high"});
    mark.cost = numberAt(evaluation, {"ledger", "online_flops_per_token"});
    const std::string status = textAt(evaluation, "status");
    mark.usable = status == "ok";
    if (status != "ok")
        mark.note = status + ": " + textAt(evaluation, "reason");
    return mark;
}

void addRanking(const Json &ranking, ReportDecision &decision)
{
    for (const Json &entry : ranking) {
        const std::string name = textAt(entry, "name"), reason = textAt(entry, "reason");
        const auto mark = std::ranges::find(decision.candidates, name, &CandidateMark::name);
        if (mark == decision.candidates.end())
            continue;
        mark->tie = static_cast<int>(std::clamp(numberAt(entry, {"tie"}).value_or(-1), -1.0, 1e6));
        if (!reason.empty()) {
            mark->note = reason;
            if (reason.find("output energy") != std::string::npos)
                decision.notes.push_back(name + ": " + reason);
        }
    }
}

} // namespace

Expected<ComparisonFile> readComparisonFile(const std::string &file)
{
    std::ifstream in(file, std::ios::binary);
    if (!in)
        return dataError(file, "cannot be read", "expected what `planish-cli compare --json` prints");
    ComparisonFile comparison;
    comparison.json = Json::parse(in, nullptr, false);
    const Json &json = comparison.json;
    if (json.is_discarded() || textAt(json, "schema") != "planish.comparison/1")
        return dataError(file, "is no comparison", "expected what `planish-cli compare --json` prints (planish.comparison/1)");
    if (!json.contains("edges") || !json["edges"].is_array())
        return dataError(file, "edges is no list", "expected what `planish-cli compare --json` prints");
    const std::string name = "comparison " + std::filesystem::path(file).filename().string();
    for (const Json &edge : json["edges"]) {
        if (const std::string skipped = textAt(edge, "skipped"); !skipped.empty()) {
            comparison.skipped.push_back(skipped);
            continue;
        }
        if (!edge.is_object() || textAt(edge, "edge").empty() || !edge.contains("evaluations") || !edge["evaluations"].is_array())
            return dataError(file, "an entry of edges has no edge or no evaluations",
                             "expected what `planish-cli compare --json` prints");
        ReportDecision decision{.edge = {textAt(edge, "edge")}, .rule = "ranking only", .source = name};
        for (const Json &evaluation : edge["evaluations"])
            decision.candidates.push_back(markOf(evaluation));
        if (edge.contains("ranking") && edge["ranking"].is_array())
            addRanking(edge["ranking"], decision);
        comparison.decisions.push_back(std::move(decision));
    }
    return comparison;
}

} // namespace planish
