// The verbs `export` and `targets`: a plan to a folder for one converter, and the table of converters and engines.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "core/plan/exporter.h"

namespace planish {

/// Reads the plan, writes the files of `target` to the folder `out`. Errors: unknown target with the nearest, an engine that is
/// only linted, a target without an exporter, faults of the plan, `out` in the way.
Expected<ExportResult> runExport(const std::string &planFile, const std::string &target, const std::string &out);

nlohmann::ordered_json exportJson(const ExportResult &result); ///< planish.export/1
Expected<nlohmann::ordered_json> targetsJson();                ///< planish.targets/1

} // namespace planish
