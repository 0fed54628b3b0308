// What goes out to other programs: one function per target, one table, one folder that appears whole or not at all.
// Facts about the targets: resources/targets/*.yaml and their notes.
#pragma once

#include <string>
#include <vector>

#include "core/graph/target_capabilities.h"
#include "core/plan/plan.h"
#include "core/plan/side_file.h"

namespace planish {

/// What became of one edge or stream on its way out; every part of the plan is in exactly one of the three lists.
struct EdgeExport {
    std::string edge;
    Fidelity fidelity = Fidelity::Unsupported;
    std::vector<std::string> carried, recomputed, dropped;
};
struct ExportContent {
    struct File {
        std::string name, text;
    };
    std::vector<File> files; ///< beside the manifest, its side file and planish-hint.json
    std::vector<std::string> warnings;
    std::vector<EdgeExport> edges;
};
struct ExportContext {
    const Plan *plan = nullptr;
    const std::vector<SideTensor> *tensors = nullptr; ///< what the side file holds
    const TargetCapabilities *target = nullptr;
};
using Exporter = Expected<ExportContent> (*)(const ExportContext &);

/// The exporter of a target key, null when this build writes no files for it.
Exporter findExporter(const std::string &target);
std::vector<std::string> exporterKeys();

Expected<ExportContent> exportSafetensors(const ExportContext &context);

struct ExportResult {
    std::string target;
    Fidelity fidelity = Fidelity::Unsupported; ///< the weakest of its edges
    std::vector<std::string> files, warnings;
    std::vector<EdgeExport> edges;
    bool carriesSomething = false; ///< false: nothing was written
};

/// Writes the manifest, its side file, the target's files and planish-hint.json into a temporary folder beside `out` and renames
/// it. Errors: unknown target (usage), no exporter, `out` is in the way, the disk.
Expected<ExportResult> exportPlan(const std::string &planFile, const Plan &plan, const TargetCapabilities &target,
                                  const std::string &out);

} // namespace planish
