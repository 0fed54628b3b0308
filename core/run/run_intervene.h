// The verb `intervene`: one action on a target of every edge asked for, beside a control. evaluation.md 5.
#pragma once

#include "core/evaluate/intervention.h"
#include "core/run/engine.h"

namespace planish {

struct InterveneRequest {
    std::vector<std::string> edges; ///< globs
    InterventionTarget target;
    InterventionAction action;
    InterventionOptions options;
    RowRequest rows;
};

/// One intervention per matched edge. A finding is looked up among those `analyze` gives under the default rules.
Expected<std::vector<Intervention>> runIntervene(const Engine &engine, const Opened &opened, const InterveneRequest &request,
                                                 std::stop_token stop, const ProgressSink &progress);

nlohmann::ordered_json toJson(const Intervention &intervention);
/// planish.intervention/1, or planish.interventions/1 around several.
nlohmann::ordered_json toJson(const std::vector<Intervention> &interventions);

} // namespace planish
