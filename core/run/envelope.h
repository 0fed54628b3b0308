// JSON of every verb: one object with `schema`; non-finite numbers become null with an entry in `notes`. cli.md "JSON".
#pragma once

#include <nlohmann/json.hpp>

#include "core/plan/plan_ledger.h"
#include "core/run/engine.h"

namespace planish {

nlohmann::ordered_json toJson(const Evaluation &evaluation, bool breakdown = false);
nlohmann::ordered_json toJson(const std::vector<Evaluation> &evaluations, bool breakdown = false); ///< one object or planish.evaluations/1
nlohmann::ordered_json toJson(const Analysis &analysis, ArrayDetail arrays);
nlohmann::ordered_json toJson(const Sweep &sweep);
nlohmann::ordered_json toJson(const Comparison &comparison);
nlohmann::ordered_json toJson(const QuantizationResult &result);
nlohmann::ordered_json toJson(const ApplyResult &result);
nlohmann::ordered_json toJson(const VerifyResult &result);
nlohmann::ordered_json toJson(const CheckResult &result);
nlohmann::ordered_json plannedJson(const Plan &plan, const std::string &out, const std::vector<std::string> &files,
                                   const MachineProfile *machine = nullptr); ///< with a profile: time estimates
nlohmann::ordered_json infoJson(const Opened &opened, const InfoRequest &request);
nlohmann::ordered_json methodsJson();
nlohmann::ordered_json formatsJson();
nlohmann::ordered_json backendsJson();
nlohmann::ordered_json filesJson(const std::vector<std::string> &files);
nlohmann::ordered_json outputJson(const OutputBlock &output);

/// Text with 17 significant digits, non-finite numbers as null.
std::string dumpJson(const nlohmann::ordered_json &object);

} // namespace planish
