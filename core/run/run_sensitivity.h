// `analyze --sensitivity`: the error under the specs beside the geometry of every edge, and layers by damage. evaluation.md 4.
#pragma once

#include "core/run/engine.h"

namespace planish {

/// Fills `sensitivity` of every analyzed edge and `layers`. An edge without weights keeps a note instead.
Expected<void> addSensitivity(const Engine &engine, const Opened &opened, const AnalyzeRequest &request, Analysis &analysis,
                              std::stop_token stop, const ProgressSink &progress);

/// Arrays per channel only when asked for.
nlohmann::ordered_json toJson(const Sensitivity &sensitivity, ArrayDetail arrays);
nlohmann::ordered_json toJson(const LayerDamage &layer);

} // namespace planish
