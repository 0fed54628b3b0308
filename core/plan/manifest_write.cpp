#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/io/atomic_file.h"
#include "core/plan/manifest.h"
#include "core/plan/manifest_operators.h"
#include "core/plan/plan_ledger.h"
#include "core/plan/yaml_emit.h"

namespace planish {

namespace {

using Json = nlohmann::ordered_json;

Json sourceFileJson(const SourceFile &file)
{
    return {{"file", file.file}, {"sha256", file.sha256}};
}

Json sourceJson(const PlanSource &source)
{
    Json json = Json::object();
    if (source.checkpoint.size() == 1) {
        json["checkpoint"] = sourceFileJson(source.checkpoint[0]);
    } else if (source.checkpoint.size() > 1) {
        Json files = Json::array();
        for (const SourceFile &file : source.checkpoint)
            files.push_back(sourceFileJson(file));
        json["checkpoint"] = {{"files", files}};
    }
    if (!source.configSha256.empty())
        json["config_sha256"] = source.configSha256;
    json["dump"] = sourceFileJson(source.dump);
    json["dump"]["model"] = source.model;
    json["dump"]["model_revision"] = source.modelRevision;
    json["dump"]["observer"] = "absmax";
    if (!source.family.empty())
        json["family"] = source.family;
    const ModelInfo &model = source.modelInfo;
    json["model"] = {{"hidden_size", model.hiddenSize}, {"num_heads", model.numHeads},   {"num_kv_heads", model.numKvHeads},
                     {"head_dim", model.headDim},       {"ffn_size", model.ffnSize},     {"num_layers", model.numLayers},
                     {"tied_embeddings", model.tiedEmbeddings}};
    return json;
}

Json calibrationJson(const PlanCalibration &calibration)
{
    Json json = {{"requests", calibration.requests},
                 {"rows", calibration.rows},
                 {"held_out_rows", calibration.heldOutRows},
                 {"sealed_rows", calibration.sealedRows},
                 {"split_seed", calibration.splitSeed},
                 {"masked", calibration.masked},
                 {"bos_excluded", calibration.bosExcluded},
                 {"phases", calibration.phases},
                 {"unit", calibration.unit},
                 {"held_out_requests", calibration.heldOut},
                 {"sealed_requests", calibration.sealed},
                 {"validation_rows", calibration.validationRows},
                 {"available_rows", calibration.availableRows},
                 {"skipped_positions", calibration.skippedPositions},
                 {"rows_sha256", Json::object()}};
    for (const auto &[part, hash] : calibration.rowsSha256)
        json["rows_sha256"][part] = hash;
    const RowRequest &request = calibration.request;
    const char *phase = request.phase == Phase::Both ? "both" : request.phase == Phase::Decode ? "decode" : "prefill";
    json["x-request"] = {{"calibration", request.calibration}, {"budget", request.budget}, {"phase", phase}, {"skip_ids", request.skipIds}};
    return json;
}

Json choicesJson(const std::vector<ChoiceLog> &choices)
{
    Json list = Json::array();
    for (const ChoiceLog &log : choices) {
        Json candidates = Json::array();
        for (const ChoiceEntry &entry : log.candidates) {
            Json item = {{"name", entry.name}, {"status", entry.status}, {"reason", nullptr}, {"relative_frobenius", nullptr}, {"tie", nullptr}};
            if (!entry.reason.empty())
                item["reason"] = entry.reason;
            if (entry.relativeFrobenius)
                item["relative_frobenius"] = *entry.relativeFrobenius;
            if (entry.tie >= 0)
                item["tie"] = entry.tie;
            for (const auto &[key, value] : {std::pair{"x-low", entry.low}, std::pair{"x-high", entry.high}, std::pair{"x-online_flops", entry.onlineFlops},
                                             std::pair{"x-weight_bits", entry.weightBits}}) {
                if (value && std::isfinite(*value))
                    item[key] = *value;
            }
            candidates.push_back(std::move(item));
        }
        list.push_back({{"edge", log.edge.value}, {"rule", log.rule}, {"candidates", std::move(candidates)}});
    }
    return list;
}

Json runtimeJson(const Plan &plan)
{
    std::vector<std::string> kernels;
    for (const Assignment &assignment : plan.assignments) {
        for (const Operator &op : assignment.placement.online) {
            const std::string name = nameOf(op);
            if (std::find(kernels.begin(), kernels.end(), name) == kernels.end())
                kernels.push_back(name);
        }
    }
    Json json = {{"required_kernels", kernels}, {"fallback_forbidden", true}, {"tensor_parallel", plan.tensorParallel}, {"targets", Json::object()}};
    if (!plan.target.empty())
        json["x-target"] = plan.target;
    return json;
}

} // namespace

nlohmann::ordered_json manifestJson(const Plan &plan, SideTensors &side)
{
    Json json;
    json["schema"] = kPlanSchema;
    json["tool"] = {{"name", "planish"}, {"version", plan.toolVersion}, {"backend", plan.backend}, {"cpu", plan.cpu}};
    json["source"] = sourceJson(plan.source);
    json["basis"] = {{"in", plan.basisIn.empty() ? Json(nullptr) : Json(plan.basisIn)}, {"out", nullptr}};
    json["calibration"] = calibrationJson(plan.calibration);
    Json edges = Json::array(), streams = Json::array();
    for (const Assignment &assignment : plan.assignments)
        (assignment.edge.value.empty() ? streams : edges).push_back(assignmentJson(assignment, side));
    json["edges"] = std::move(edges);
    if (!streams.empty())
        json["streams"] = std::move(streams);
    json["choices"] = choicesJson(plan.choices);
    json["ledger"] = ledgerJson(ledgerOf(plan));
    json["runtime"] = runtimeJson(plan);
    if (!plan.notes.empty())
        json["x-notes"] = plan.notes;
    if (!plan.command.empty())
        json["x-command"] = plan.command;
    return json;
}

Expected<std::vector<std::string>> writePlan(const Plan &plan, const std::string &yamlFile)
{
    const std::filesystem::path path(yamlFile);
    const std::string folder = path.has_parent_path() ? path.parent_path().string() : std::string(".");
    SideTensors side;
    Json manifest = manifestJson(plan, side);
    auto name = writeSideFile(folder, path.stem().string(), side.tensors());
    if (!name)
        return tl::make_unexpected(name.error());
    nameSideFile(manifest, *name);
    const std::string sideFile = name->empty() ? std::string() : (std::filesystem::path(folder) / *name).string();
    if (auto written = writeFileAtomically(yamlFile, toYaml(manifest)); !written) {
        if (!sideFile.empty())
            removeQuietly(sideFile);
        return tl::make_unexpected(written.error());
    }
    std::vector<std::string> files = {yamlFile};
    if (!sideFile.empty())
        files.push_back(sideFile);
    return files;
}

} // namespace planish
