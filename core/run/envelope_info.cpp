// JSON of the verb `info`: what a file holds, from its headers. Values are scanned only in small files (cli.md).
#include <cmath>
#include <filesystem>
#include <set>

#include <nlohmann/json.hpp>

#include "core/io/file_key.h"
#include "core/run/checkpoint_info.h"
#include "core/run/envelope.h"

namespace planish {

namespace {

using Json = nlohmann::ordered_json;
constexpr std::uintmax_t kScanLimit = std::uintmax_t(64) << 20;  // cli.md: values are scanned below 64 MiB
constexpr std::uintmax_t kHashLimit = std::uintmax_t(1) << 30;   // and hashed below 1 GiB

std::uintmax_t sizeOf(const std::string &file)
{
    std::error_code code;
    const std::uintmax_t size = std::filesystem::file_size(file, code);
    return code ? 0 : size;
}

Json hashOf(const std::string &file, Json &notes)
{
    if (std::filesystem::is_directory(file))
        return nullptr;
    if (sizeOf(file) > kHashLimit) {
        notes.push_back("sha256 is not computed above 1 GiB");
        return nullptr;
    }
    auto hash = sha256OfFile(file);
    return hash ? Json(*hash) : Json(nullptr);
}

Json modelJson(const ModelInfo &model)
{
    Json json = Json::object();
    auto text = [&](const char *key, const std::string &value) {
        if (!value.empty())
            json[key] = value;
    };
    auto number = [&](const char *key, std::int64_t value) {
        if (value != 0)
            json[key] = value;
    };
    text("model", model.model);
    text("model_revision", model.revision);
    text("family", model.family);
    text("tokenizer", model.tokenizer);
    text("corpus", model.corpus);
    text("created_by", model.createdBy);
    number("num_layers", model.numLayers);
    number("hidden_size", model.hiddenSize);
    number("num_heads", model.numHeads);
    number("num_kv_heads", model.numKvHeads);
    number("head_dim", model.headDim);
    number("ffn_size", model.ffnSize);
    number("vocab_size", model.vocabSize);
    text("norm_kind", model.normKind);
    json["norm_offset"] = model.normOffset;
    text("activation", model.activation);
    text("rope_style", model.ropeStyle);
    json["post_norm"] = model.postNorm;
    json["tied_embeddings"] = model.tiedEmbeddings;
    return json;
}

Json tokensJson(const TokenTable &tokens)
{
    std::set<std::int32_t> requests(tokens.request.begin(), tokens.request.end());
    Json phases = Json::array();
    if (std::find(tokens.phase.begin(), tokens.phase.end(), 0) != tokens.phase.end() || tokens.phase.empty())
        phases.push_back("prefill");
    if (std::find(tokens.phase.begin(), tokens.phase.end(), 1) != tokens.phase.end())
        phases.push_back("decode");
    const auto masked = std::count(tokens.mask.begin(), tokens.mask.end(), 0);
    return {{"rows", tokens.size()}, {"requests", requests.size()}, {"phases", phases}, {"masked", masked}, {"unit", tokens.unit}};
}

std::string weightsState(const Edge &edge)
{
    std::size_t present = 0;
    for (const Consumer &consumer : edge.consumers)
        present += consumer.present;
    if (edge.consumers.empty() || present == 0)
        return "absent";
    return present == edge.consumers.size() ? "present" : "partial";
}

Json edgesJson(const Opened &opened)
{
    Json list = Json::array();
    for (const DumpEdge &edge : opened.dump->info().edges) {
        Json json{{"edge", edge.id.value}, {"path", edge.path}, {"axes", edge.axes}, {"layer", edge.layer}, {"site", edge.site}};
        json["shape"] = {edge.rows, edge.channels};
        json["dtype"] = nameOf(edge.storedType);
        json["upcast_bf16"] = edge.upcastBf16;
        const Edge *graphEdge = opened.graph.find(edge.id);
        Json consumers = Json::array();
        if (graphEdge) {
            for (const Consumer &consumer : graphEdge->consumers)
                consumers.push_back(consumer.tensor.value);
        }
        json["consumers"] = consumers;
        json["producer"] = graphEdge ? nameOf(graphEdge->producer) : edge.producer;
        json["basis"] = edge.basis;
        json["weights"] = graphEdge ? weightsState(*graphEdge) : "absent";
        list.push_back(json);
    }
    return list;
}

std::int64_t nonFiniteIn(const MatrixD &values)
{
    return std::count_if(values.values().begin(), values.values().end(), [](double x) { return !std::isfinite(x); });
}

Json weightsJson(const Opened &opened, bool scan)
{
    Json list = Json::array();
    for (const auto &[name, tensor] : opened.weights->tensors()) {
        if (tensor.shape.size() != 2)
            continue;
        Json json{{"name", name}};
        json["path"] = tensor.checkpointName.empty() && tensor.inDump ? tensor.inDump->path : tensor.checkpointName;
        json["shape"] = tensor.shape;
        json["dtype"] = nameOf(tensor.storedType);
        json["nonfinite"] = nullptr;
        if (scan) {
            if (auto values = opened.weights->read(TensorName{name}))
                json["nonfinite"] = nonFiniteIn(*values);
        }
        list.push_back(json);
    }
    return list;
}

Json namesJson(const Opened &opened, bool mapping)
{
    Json json{{"matched", opened.weights->tensors().size()}, {"unmatched", opened.weights->unmatched()}};
    if (mapping) {
        Json map = Json::object();
        for (const auto &[name, tensor] : opened.weights->tensors())
            map[name] = tensor.checkpointName.empty() && tensor.inDump ? tensor.inDump->path : tensor.checkpointName;
        json["mapping"] = map;
    }
    return json;
}

Json refusedJson(const std::vector<RefusedObject> &refused)
{
    Json list = Json::array();
    for (const RefusedObject &object : refused)
        list.push_back({{"path", object.path}, {"reason", object.reason}});
    return list;
}

} // namespace

Json infoJson(const Opened &opened, const InfoRequest &request)
{
    const DumpInfo &dump = opened.dump->info();
    Json notes = Json::array();
    for (const std::string &note : dump.notes)
        notes.push_back(note);
    for (const std::string &note : opened.graph.notes)
        notes.push_back(note);
    const bool scan = sizeOf(dump.file) < kScanLimit;
    if (!scan)
        notes.push_back("values are not scanned above 64 MiB");
    Json json{{"schema", "planish.info/1"}, {"file", dump.file}};
    json["sha256"] = hashOf(dump.file, notes);
    json["format"] = dump.format;
    json["layout"] = dump.layout;
    json["confidence"] = dump.confidence;
    json["reason"] = dump.reason;
    json["family"] = opened.graph.family ? Json(opened.graph.family->key) : Json(nullptr);
    json["model"] = modelJson(opened.graph.model);
    json["tokens"] = tokensJson(dump.tokens);
    json["edges"] = edgesJson(opened);
    json["weights"] = weightsJson(opened, scan);
    json["names"] = namesJson(opened, request.names);
    json["refused"] = refusedJson(dump.refused);
    json["notes"] = notes;
    return json;
}

bool looksLikeCheckpoint(const std::string &path)
{
    if (std::filesystem::is_directory(path))
        return true;
    const std::string extension = std::filesystem::path(path).extension().string();
    for (const char *known : {".safetensors", ".pt", ".pth", ".bin", ".pkl", ".ckpt"}) {
        if (extension == known)
            return true;
    }
    return false;
}

Json infoJson(const Checkpoint &checkpoint)
{
    const CheckpointInfo &info = checkpoint.info();
    Json notes = Json::array(), weights = Json::array();
    const bool scan = sizeOf(info.path) < kScanLimit;
    for (const StoredTensor &tensor : info.tensors) {
        Json json{{"name", tensor.name}, {"path", tensor.name}, {"shape", tensor.shape}, {"dtype", nameOf(tensor.type)}, {"nonfinite", nullptr}};
        if (scan && tensor.shape.size() <= 2) {
            if (auto values = checkpoint.readMatrix(tensor)) {
                json["nonfinite"] = nonFiniteIn(*values);
                if (json["nonfinite"] > 0)
                    notes.push_back(tensor.name + ": " + std::to_string(json["nonfinite"].get<std::int64_t>()) + " non-finite values");
            }
        }
        weights.push_back(json);
    }
    Json json{{"schema", "planish.info/1"}, {"file", info.path}};
    json["sha256"] = hashOf(info.path, notes);
    json["format"] = info.kind == "hdf5" ? "hdf5" : "safetensors";
    json["layout"] = info.kind == "folder" ? "safetensors_sharded" : "checkpoint";
    json["confidence"] = 1.0;
    json["reason"] = "a checkpoint: weights under their own names, no activations";
    json["model"] = info.config ? modelJson(*info.config) : Json::object();
    json["tokens"] = {{"rows", 0}, {"requests", 0}, {"phases", Json::array()}, {"masked", 0}};
    json["edges"] = Json::array();
    json["weights"] = weights;
    json["names"] = {{"matched", info.tensors.size()}, {"unmatched", Json::array()}};
    json["refused"] = Json::array();
    json["notes"] = notes;
    return json;
}

} // namespace planish
