#include "core/plan/exporter.h"

#include <algorithm>
#include <filesystem>

#include "core/io/atomic_file.h"
#include "core/plan/manifest.h"

namespace planish {

namespace fs = std::filesystem;

namespace {

struct ExporterRow {
    const char *target;
    Exporter write;
};
constexpr ExporterRow kExporters[] = {{"safetensors", exportSafetensors}};

/// A folder that is removed unless it was renamed to its place.
class TemporaryFolder {
public:
    explicit TemporaryFolder(std::string path) : m_path(std::move(path)) {}
    TemporaryFolder(const TemporaryFolder &) = delete;
    TemporaryFolder &operator=(const TemporaryFolder &) = delete;
    ~TemporaryFolder()
    {
        std::error_code ignored;
        if (!m_path.empty())
            fs::remove_all(m_path, ignored);
    }
    const std::string &path() const { return m_path; }
    void release() { m_path.clear(); }

private:
    std::string m_path;
};

Expected<void> checkPlace(const std::string &out)
{
    std::error_code code;
    if (!fs::exists(out, code))
        return {};
    if (!fs::is_directory(out, code) || !fs::is_empty(out, code))
        return dataError(out, "is in the way", "expected a new or empty folder for --out");
    return {};
}

std::string hintText(const ExportResult &result)
{
    nlohmann::ordered_json edges = nlohmann::ordered_json::array();
    for (const EdgeExport &edge : result.edges)
        edges.push_back({{"edge", edge.edge},
                         {"fidelity", nameOf(edge.fidelity)},
                         {"carried", edge.carried},
                         {"recomputed", edge.recomputed},
                         {"dropped", edge.dropped}});
    const nlohmann::ordered_json hint = {
        {"schema", "planish.hint/1"}, {"target", result.target}, {"fidelity", nameOf(result.fidelity)}, {"edges", edges}};
    return hint.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// All files of the export into `folder`; their names come back.
Expected<std::vector<std::string>> fillFolder(const std::string &folder, const std::string &planFile, const Plan &plan,
                                              const ExportContent &content, const ExportResult &result)
{
    std::error_code code;
    if (!fs::create_directories(folder, code) && code)
        return writeError(folder, code.value());
    auto written = writePlan(plan, (fs::path(folder) / fs::path(planFile).filename()).string());
    if (!written)
        return tl::make_unexpected(written.error());
    std::vector<std::string> names;
    for (const std::string &file : *written)
        names.push_back(fs::path(file).filename().string());
    std::vector<ExportContent::File> files = content.files;
    files.push_back({"planish-hint.json", hintText(result)});
    for (const ExportContent::File &file : files) {
        if (auto done = writeFileAtomically((fs::path(folder) / file.name).string(), file.text); !done)
            return tl::make_unexpected(done.error());
        names.push_back(file.name);
    }
    return names;
}

Expected<void> moveIntoPlace(TemporaryFolder &folder, const std::string &out)
{
    std::error_code code;
    fs::rename(folder.path(), out, code); // replaces an empty folder, never a filled one
    if (code)
        return writeError(out, code.value());
    folder.release();
    return {};
}

} // namespace

Exporter findExporter(const std::string &target)
{
    const auto row =
        std::find_if(std::begin(kExporters), std::end(kExporters), [&](const ExporterRow &r) { return r.target == target; });
    return row == std::end(kExporters) ? nullptr : row->write;
}

std::vector<std::string> exporterKeys()
{
    std::vector<std::string> keys;
    for (const ExporterRow &row : kExporters)
        keys.emplace_back(row.target);
    return keys;
}

Expected<ExportResult> exportPlan(const std::string &planFile, const Plan &plan, const TargetCapabilities &target,
                                  const std::string &out)
{
    const Exporter write = findExporter(target.key);
    if (write == nullptr)
        return dataError(target.key, "this build writes no files for this target", "a target whose row says `exports`");
    std::string place = out;
    while (place.size() > 1 && place.back() == '/')
        place.pop_back();
    if (auto free = checkPlace(place); !free)
        return tl::make_unexpected(free.error());
    SideTensors side;
    manifestJson(plan, side);
    auto content = write({&plan, &side.tensors(), &target});
    if (!content)
        return tl::make_unexpected(content.error());
    ExportResult result{target.key, Fidelity::Exact, {}, content->warnings, content->edges, false};
    for (const EdgeExport &edge : result.edges) {
        result.fidelity = std::max(result.fidelity, edge.fidelity); // the order of the enum: exact first
        result.carriesSomething |= !edge.carried.empty() || !edge.recomputed.empty();
    }
    if (!result.carriesSomething) {
        result.fidelity = Fidelity::Unsupported;
        return result;
    }
    TemporaryFolder folder(temporaryNameFor(place));
    auto names = fillFolder(folder.path(), planFile, plan, *content, result);
    if (!names)
        return tl::make_unexpected(names.error());
    if (auto moved = moveIntoPlace(folder, place); !moved)
        return tl::make_unexpected(moved.error());
    for (const std::string &name : *names)
        result.files.push_back((fs::path(place) / name).string());
    return result;
}

} // namespace planish
