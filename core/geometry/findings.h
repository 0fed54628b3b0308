// Findings: every rule of evaluation.md 3, one function a rule. A finding records the rule that matched, never a cause.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/geometry/concentration.h"
#include "core/graph/opened.h"
#include "core/measure/statistics.h"

namespace planish {

struct FindingRule {
    std::string text, statistic, comparator, scope;
    double threshold = 0;
};

struct Finding {
    std::string id, kind;
    nlohmann::json where; ///< row, channel, value, … as in the table of evaluation.md 3
    FindingRule rule;
    double value = 0;
    std::string sharing;  ///< tensor | token | group | row
    std::optional<double> stability;
    std::string evidence = "observation";
    std::vector<std::string> interventions;
    bool soft = false;
};

/// Editable thresholds, `kind.name` -> value, defaults of evaluation.md 3.
struct RuleThresholds {
    std::map<std::string, double> values;
    static RuleThresholds defaults();
    double operator()(const std::string &name) const { return values.at(name); }
};
/// `KIND.NAME=V` flags; unknown names are Usage errors with the nearest names.
Expected<RuleThresholds> parseRules(const std::vector<std::string> &flags);

struct EdgeWeights; // core/geometry/edge_weights.h

/// All findings of one edge in the order of the table. `weights`: what a scan of the consumers found (scanned here when null);
/// `seed` is that of the bootstrap stream. Stability needs `statistics.units`.
Expected<std::vector<Finding>> findOn(const Opened &opened, const Edge &edge, const Statistics &statistics,
                                      const RuleThresholds &thresholds, const RowRequest &rows, std::stop_token stop,
                                      const EdgeWeights *weights = nullptr, std::uint64_t seed = 0);

struct SystematicDimension {
    std::int64_t channel = 0;
    std::vector<std::int64_t> layers;
    double layerFraction = 0, positionFractionAll = 0, positionFractionAffected = 0;
};
/// LLM.int8 rule over attn_in and mlp_in of all layers (evaluation.md 2).
std::vector<SystematicDimension> systematicDimensions(const std::vector<std::pair<Edge, Statistics>> &edges, double tau = 6.0,
                                                      double layerFraction = .25, double positionFraction = .06);
/// The same of the inputs alone: layer and statistics of every attn_in and mlp_in edge. Edges that did not count `tau` are left out.
std::vector<SystematicDimension> systematicDimensions(const std::vector<std::pair<std::int64_t, const Statistics *>> &inputs,
                                                      double tau = 6.0, double layerFraction = .25, double positionFraction = .06);

} // namespace planish
