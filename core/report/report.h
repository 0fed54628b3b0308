// What a report says, as values, and the page made of them. Gathering is core/run/run_report; this room computes no statistics.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/geometry/findings.h"
#include "core/plan/plan.h"
#include "core/plan/plan_ledger.h"
#include "core/report/svg_chart.h"

namespace planish {

struct ReportFile {
    std::string role, name, sha256; ///< sha256 empty = not hashed, `note` says why
    std::uintmax_t bytes = 0;
    std::string note;
};

/// Geometry of one edge over all counted rows.
struct ReportEdge {
    EdgeId edge;
    std::int64_t layer = -1;
    std::string site, dtype;
    std::uint64_t tokens = 0, channels = 0;
    double maxAbs = 0, medianAbs = 0;
    std::optional<double> maxToMedian, c1, c1pct, meanIncoherence;
    std::int64_t argmaxRow = -1, argmaxChannel = -1;
    std::vector<Finding> findings;
    std::optional<double> damage, relative; ///< ||E||_F and relative error of the identity under `specs` of the report
};

/// One edge with candidates: from the plan's choice log or a comparison.
struct ReportDecision {
    EdgeId edge;
    std::string rule, source; ///< "lowest" …; "plan" or the name of a comparison
    std::vector<CandidateMark> candidates;
    std::vector<std::string> notes; ///< reasons of ties, skipped, domination
    std::vector<std::string> commands;
};

/// What was measured again on this dump with the plan's own factors.
struct ReportProof {
    EdgeId edge;
    std::optional<Evaluation> evaluation; ///< none when it could not be measured; `note` says why
    std::string note;
    std::vector<double> profileBefore, profileAfter, curveBefore, curveAfter; ///< calibration rows
    std::optional<double> maxToMedianBefore, incoherenceBefore, incoherenceAfter;
    std::vector<std::string> commands;
};

struct ReportVerifyRun {
    std::string time, result, rows;
};

struct ReportContent {
    std::string title, created, version, backend, splitText, specsText;
    std::vector<ReportFile> files;
    RowCounts rows;
    std::vector<ReportEdge> edges;
    std::vector<SystematicDimension> systematic;
    std::vector<std::string> notes;
    std::optional<Plan> plan;
    std::string planFile;
    std::optional<PlanLedger> ledger;
    std::optional<CheckResult> check;
    std::vector<ReportVerifyRun> verify;
    std::int64_t sealedOpened = 0;
    std::vector<ReportDecision> decisions;
    std::vector<ReportProof> proofs;
    std::vector<std::string> commands; ///< of the page as a whole
    nlohmann::ordered_json data;       ///< embedded, for programs
};

/// The page: one HTML text, no network, no script needed to read it. Every string of the content is escaped.
std::string reportHtml(const ReportContent &content);

} // namespace planish
