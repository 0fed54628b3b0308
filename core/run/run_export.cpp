#include "core/run/run_export.h"

#include "core/names/family.h"

namespace planish {

namespace {

using Json = nlohmann::ordered_json;

std::string joined(const std::vector<std::string> &words)
{
    std::string text;
    for (const std::string &word : words)
        text += (text.empty() ? "" : ", ") + word;
    return text;
}

} // namespace

Expected<ExportResult> runExport(const std::string &planFile, const std::string &target, const std::string &out)
{
    auto targets = loadTargets(resourceFolder());
    if (!targets)
        return tl::make_unexpected(targets.error());
    const TargetCapabilities *row = findTarget(*targets, target);
    if (row == nullptr)
        return usageError("--to", "unknown target \"" + target + "\"", "expected one of: " + joined(exporterKeys()));
    if (findExporter(target) == nullptr)
        return dataError("--to " + target, "this build writes no files for this target",
                         "expected one of: " + joined(exporterKeys()));
    auto plan = readPlan(planFile);
    if (!plan)
        return tl::make_unexpected(plan.error());
    return exportPlan(planFile, *plan, *row, out);
}

Json exportJson(const ExportResult &result)
{
    Json edges = Json::array();
    for (const EdgeExport &edge : result.edges)
        edges.push_back({{"edge", edge.edge},
                         {"fidelity", nameOf(edge.fidelity)},
                         {"carried", edge.carried},
                         {"recomputed", edge.recomputed},
                         {"dropped", edge.dropped}});
    return {{"schema", "planish.export/1"}, {"target", result.target},     {"fidelity", nameOf(result.fidelity)},
            {"files", result.files},        {"warnings", result.warnings}, {"edges", edges}};
}

Expected<Json> targetsJson()
{
    auto targets = loadTargets(resourceFolder());
    if (!targets)
        return tl::make_unexpected(targets.error());
    Json list = Json::array();
    for (const TargetCapabilities &target : *targets) {
        Json carries = Json::object();
        for (const auto &[part, fidelity] : target.carries)
            carries[part] = nameOf(fidelity);
        list.push_back({{"key", target.key},
                        {"files", target.files},
                        {"exports", findExporter(target.key) != nullptr},
                        {"lint_only", target.lintOnly},
                        {"carries", carries},
                        {"note", target.note}});
    }
    return Json{{"schema", "planish.targets/1"}, {"targets", list}};
}

} // namespace planish
