#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/plan/manifest.h"

namespace planish {

namespace {

// A manifest larger than this is refused before it is read into memory.
constexpr std::uintmax_t kMaxManifest = 64u << 20;

std::string hashText(const YamlReader &reader)
{
    // Sixty-four digits may look like a number; a hash is text whatever its digits are.
    return reader.present() && reader.node()->kind == YamlNode::Kind::Scalar ? reader.node()->text : std::string();
}

SourceFile readSourceFile(const YamlReader &entry)
{
    return {entry["file"].text(), hashText(entry["sha256"])};
}

PlanSource readSource(const YamlReader &entry)
{
    entry.onlyKeys({"checkpoint", "config_sha256", "dump", "family", "model"});
    PlanSource source;
    const YamlReader checkpoint = entry["checkpoint"];
    if (checkpoint.present() && checkpoint["files"].given()) {
        checkpoint.onlyKeys({"files"});
        for (const YamlReader &file : checkpoint["files"].items())
            source.checkpoint.push_back(readSourceFile(file));
    } else if (checkpoint.present()) {
        checkpoint.onlyKeys({"file", "sha256"});
        source.checkpoint.push_back(readSourceFile(checkpoint));
    }
    source.configSha256 = hashText(entry["config_sha256"]);
    const YamlReader dump = entry["dump"];
    dump.onlyKeys({"file", "sha256", "model", "model_revision", "observer", "calibration_manifest_sha256"});
    source.dump = readSourceFile(dump);
    source.model = dump["model"].textOr("");
    source.modelRevision = dump["model_revision"].textOr("");
    source.family = entry["family"].textOr("");
    const YamlReader model = entry["model"];
    model.onlyKeys({"hidden_size", "num_heads", "num_kv_heads", "head_dim", "ffn_size", "num_layers", "tied_embeddings"});
    ModelInfo &info = source.modelInfo;
    info.family = source.family;
    info.model = source.model;
    info.revision = source.modelRevision;
    info.hiddenSize = model["hidden_size"].integerOr(0);
    info.numHeads = model["num_heads"].integerOr(0);
    info.numKvHeads = model["num_kv_heads"].integerOr(0);
    info.headDim = model["head_dim"].integerOr(0);
    info.ffnSize = model["ffn_size"].integerOr(0);
    info.numLayers = model["num_layers"].integerOr(0);
    info.tiedEmbeddings = model["tied_embeddings"].booleanOr(false);
    return source;
}

void readRequest(const YamlReader &entry, PlanCalibration &calibration)
{
    RowRequest &request = calibration.request;
    request.splitSeed = calibration.splitSeed;
    request.skipPositions = calibration.skippedPositions;
    if (calibration.phases.size() == 1)
        request.phase = calibration.phases[0] == "decode" ? Phase::Decode : Phase::Prefill;
    const std::size_t units = calibration.requests.size() + calibration.heldOut.size() + calibration.sealed.size();
    if (!calibration.heldOut.empty() && units > 0)
        request.calibration = static_cast<double>(calibration.requests.size()) / static_cast<double>(units);
    const YamlReader extra = entry["x-request"];
    request.calibration = extra["calibration"].numberOr(request.calibration);
    request.budget = extra["budget"].integerOr(request.budget);
    const std::string phase = extra["phase"].textOr("");
    if (!phase.empty())
        request.phase = phase == "both" ? Phase::Both : phase == "decode" ? Phase::Decode : Phase::Prefill;
    for (const YamlReader &id : extra["skip_ids"].items())
        request.skipIds.push_back(static_cast<std::int32_t>(id.integer()));
}

PlanCalibration readCalibration(const YamlReader &entry)
{
    entry.onlyKeys({"requests", "rows", "held_out_rows", "sealed_rows", "split_seed", "masked", "bos_excluded", "phases", "unit",
                    "held_out_requests", "sealed_requests", "validation_rows", "available_rows", "skipped_positions", "rows_sha256"});
    PlanCalibration calibration;
    calibration.requests = entry["requests"].idTexts();
    calibration.heldOut = entry["held_out_requests"].idTexts();
    calibration.sealed = entry["sealed_requests"].idTexts();
    calibration.rows = entry["rows"].integer();
    calibration.heldOutRows = entry["held_out_rows"].integerOr(0);
    calibration.sealedRows = entry["sealed_rows"].integerOr(0);
    calibration.validationRows = entry["validation_rows"].integerOr(0);
    calibration.availableRows = entry["available_rows"].integerOr(0);
    calibration.splitSeed = entry["split_seed"].unsignedOr(0);
    calibration.masked = entry["masked"].booleanOr(false);
    calibration.bosExcluded = entry["bos_excluded"].booleanOr(false);
    calibration.unit = entry["unit"].textOr("request");
    calibration.phases = entry["phases"].texts();
    for (const YamlReader &position : entry["skipped_positions"].items())
        calibration.skippedPositions.push_back(static_cast<std::int32_t>(position.integer()));
    entry["rows_sha256"].onlyKeys({"calibration", "held_out", "sealed"});
    for (const auto &[part, hash] : entry["rows_sha256"].entries())
        calibration.rowsSha256[part] = hashText(hash);
    readRequest(entry, calibration);
    return calibration;
}

std::vector<ChoiceLog> readChoices(const YamlReader &list)
{
    std::vector<ChoiceLog> choices;
    for (const YamlReader &entry : list.items()) {
        entry.onlyKeys({"edge", "rule", "candidates"});
        ChoiceLog log;
        log.edge.value = entry["edge"].text();
        log.rule = entry["rule"].textOr("lowest");
        for (const YamlReader &candidate : entry["candidates"].items()) {
            candidate.onlyKeys({"name", "status", "reason", "relative_frobenius", "tie"});
            ChoiceEntry item;
            item.name = candidate["name"].text();
            item.status = candidate["status"].textOr("ok");
            item.reason = candidate["reason"].textOr("");
            item.relativeFrobenius = candidate["relative_frobenius"].optionalNumber();
            item.low = candidate["x-low"].optionalNumber();
            item.high = candidate["x-high"].optionalNumber();
            item.onlineFlops = candidate["x-online_flops"].optionalNumber();
            item.weightBits = candidate["x-weight_bits"].optionalNumber();
            item.tie = static_cast<int>(candidate["tie"].integerOr(-1));
            log.candidates.push_back(std::move(item));
        }
        choices.push_back(std::move(log));
    }
    return choices;
}

void readRuntime(const YamlReader &entry, Plan &plan)
{
    entry.onlyKeys({"required_kernels", "fallback_forbidden", "tensor_parallel", "targets", "engine"});
    entry["required_kernels"].texts();
    entry["fallback_forbidden"].booleanOr(true);
    plan.tensorParallel = static_cast<int>(entry["tensor_parallel"].integerOr(1));
    for (const auto &[target, fidelity] : entry["targets"].entries()) {
        const std::string word = fidelity.text();
        if (word != "exact" && word != "recomputed" && word != "format_only" && word != "unsupported")
            fidelity.fail("unknown fidelity " + word, "expected exact, recomputed, format_only or unsupported");
    }
    plan.target = entry["x-target"].textOr("");
}

void readLedger(const YamlReader &entry, Plan &plan)
{
    entry.onlyKeys({"prefill", "decode", "weight_bytes", "weight_bits", "online_flops_per_token", "online_bytes_per_token", "conversion", "edges"});
    for (const char *phase : {"prefill", "decode"})
        entry[phase].onlyKeys({"tokens", "online_flops", "online_bytes", "launches", "metadata_bytes", "layers"});
    plan.ledgerOptions.prefillTokens = entry["prefill"]["tokens"].integerOr(plan.ledgerOptions.prefillTokens);
    plan.ledgerOptions.batch = entry["decode"]["tokens"].integerOr(plan.ledgerOptions.batch);
    for (const char *name : {"weight_bytes", "weight_bits", "online_flops_per_token", "online_bytes_per_token"})
        entry[name].numberOr(0);
}

void checkUnique(const Plan &plan, YamlErrors &errors)
{
    for (std::size_t i = 0; i < plan.assignments.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (labelOf(plan.assignments[i]) == labelOf(plan.assignments[j]))
                errors.add("edges[" + std::to_string(i) + "].edge", "duplicate edge " + labelOf(plan.assignments[i]), "expected every edge once");
        }
    }
}

Expected<std::string> readWhole(const std::string &file)
{
    std::error_code code;
    const std::uintmax_t size = std::filesystem::file_size(file, code);
    if (code || !std::filesystem::is_regular_file(file, code))
        return dataError(file, "cannot be read", "expected a manifest planish-plan/1");
    if (size > kMaxManifest)
        return dataError(file, "is too large for a manifest", "expected at most 64 MiB");
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in)
        return dataError(file, "cannot be read", "expected a manifest planish-plan/1");
    return text.str();
}

} // namespace

Plan readManifest(const YamlReader &root, SideReader &side, YamlErrors &errors)
{
    Plan plan;
    root.onlyKeys({"schema", "tool", "source", "basis", "calibration", "edges", "streams", "choices", "ledger", "runtime"});
    const YamlReader tool = root["tool"];
    tool.onlyKeys({"name", "version", "backend", "cpu"});
    tool["name"].textOr("");
    plan.toolVersion = tool["version"].textOr("");
    plan.backend = tool["backend"].textOr("");
    plan.cpu = tool["cpu"].textOr("");
    root.requireKeys({"source", "basis", "calibration", "edges"});
    plan.source = readSource(root["source"]);
    root["basis"].onlyKeys({"in", "out"});
    plan.basisIn = root["basis"]["in"].textOr("");
    root["basis"]["out"].textOr("");
    plan.calibration = readCalibration(root["calibration"]);
    for (const char *list : {"edges", "streams"}) {
        for (const YamlReader &entry : root[list].items()) {
            if (errors.first)
                return plan;
            plan.assignments.push_back(readAssignment(entry, side, plan.source.modelInfo));
        }
    }
    plan.choices = readChoices(root["choices"]);
    readLedger(root["ledger"], plan);
    readRuntime(root["runtime"], plan);
    plan.notes = root["x-notes"].texts();
    plan.command = root["x-command"].textOr("");
    checkUnique(plan, errors);
    return plan;
}

Expected<Plan> readPlan(const std::string &yamlFile)
{
    auto text = readWhole(yamlFile);
    if (!text)
        return tl::make_unexpected(text.error());
    auto tree = parseStrictYaml(yamlFile, *text);
    if (!tree)
        return tl::make_unexpected(tree.error());
    YamlErrors errors{yamlFile, {}, {}};
    const YamlReader root(errors, &*tree, "");
    if (!tree->isMap())
        return dataError(yamlFile, "is no map", "expected a manifest with schema: planish-plan/1");
    if (const std::string schema = root["schema"].text(); !errors.first && schema != kPlanSchema)
        root["schema"].fail("is " + schema, std::string("expected ") + kPlanSchema);
    const std::filesystem::path path(yamlFile);
    SideReader side(path.has_parent_path() ? path.parent_path().string() : std::string("."));
    Plan plan;
    if (!errors.first)
        plan = readManifest(root, side, errors);
    if (errors.first)
        return tl::make_unexpected(*errors.first);
    return plan;
}

} // namespace planish
