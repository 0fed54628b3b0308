#include "core/plan/checkpoint_copy.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/io/atomic_file.h"
#include "core/plan/receipt.h"

namespace planish {

namespace fs = std::filesystem;

namespace {

// Head room beside the tensors: headers, config, tokenizer.
constexpr std::uintmax_t kSpareBytes = 64u << 20;

/// Text files a loader wants beside the weights.
bool isCompanion(const fs::path &file)
{
    static const std::set<std::string> kNames = {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "tokenizer.model",
                                                 "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt",
                                                 "chat_template.jinja", "chat_template.json", "preprocessor_config.json"};
    return kNames.contains(file.filename().string());
}

bool isWeights(const fs::path &file)
{
    static const std::set<std::string> kEnds = {".safetensors", ".bin", ".pt", ".pth", ".h5", ".gguf"};
    return kEnds.contains(file.extension().string()) || file.filename().string().ends_with(".index.json");
}

std::string shardName(const CopyRequest &request, const std::string &inputFile)
{
    return request.input->kind == "folder" ? (fs::path(request.out) / fs::path(inputFile).filename()).string() : request.out;
}

Expected<std::string> readText(const fs::path &file)
{
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in)
        return dataError(file.string(), "cannot be read", "expected a readable file");
    return text.str();
}

/// config.json with the flags of created biases set; other companions byte for byte.
Expected<std::string> companionText(const fs::path &file, const std::vector<std::string> &flags)
{
    auto text = readText(file);
    if (!text || file.filename() != "config.json" || flags.empty())
        return text;
    auto config = nlohmann::ordered_json::parse(*text, nullptr, false);
    if (!config.is_object())
        return text;
    for (const std::string &flag : flags)
        config[flag] = true;
    return config.dump(2) + "\n";
}

Expected<void> copyCompanions(const CopyRequest &request)
{
    const bool folder = request.input->kind == "folder";
    const fs::path from = folder ? fs::path(request.input->path) : fs::path(folderOf(request.input->path));
    const fs::path to = folder ? fs::path(request.out) : fs::path(folderOf(request.out));
    std::error_code code;
    if (fs::equivalent(from, to, code))
        return {};
    for (fs::directory_iterator it(from, code), end; !code && it != end; it.increment(code)) {
        std::error_code ignored;
        const bool wanted = folder ? !isWeights(it->path()) : isCompanion(it->path());
        const fs::path target = to / it->path().filename();
        if (!it->is_regular_file(ignored) || !wanted || fs::exists(target, ignored))
            continue;
        auto text = companionText(it->path(), request.folded->configFlags());
        if (!text)
            return tl::make_unexpected(text.error());
        if (auto written = writeFileAtomically(target.string(), *text); !written)
            return written;
    }
    return {};
}

Expected<void> writeIndex(const CopyRequest &request)
{
    if (request.input->kind != "folder" || request.input->indexFile.empty())
        return {};
    auto text = readText(request.input->indexFile);
    if (!text)
        return tl::make_unexpected(text.error());
    auto index = nlohmann::ordered_json::parse(*text, nullptr, false);
    if (!index.is_object())
        index = nlohmann::ordered_json::object();
    std::uint64_t total = 0;
    for (const OutputTensor &tensor : request.folded->tensors()) {
        total += tensor.bytes();
        index["weight_map"][tensor.slot.name] = fs::path(tensor.file).filename().string();
    }
    index["metadata"]["total_size"] = total;
    for (const auto &[key, value] : request.metadata)
        index["metadata"][key] = value;
    const fs::path target = fs::path(request.out) / fs::path(request.input->indexFile).filename();
    return writeFileAtomically(target.string(), index.dump(2) + "\n");
}

/// One shard under its temporary name, complete but not yet in place.
Expected<SafetensorsWriter> writeShard(const CopyRequest &request, const std::string &file, std::stop_token stop, const ProgressSink &progress,
                                       double &done)
{
    std::vector<TensorSpec> specs;
    for (const OutputTensor &tensor : request.folded->tensors()) {
        if (tensor.file == file)
            specs.push_back(tensor.slot);
    }
    std::map<std::string, std::string> metadata = request.input->metadata;
    for (const auto &[key, value] : request.metadata)
        metadata[key] = value;
    auto writer = SafetensorsWriter::create(shardName(request, file), std::move(specs), metadata);
    if (!writer)
        return writer;
    for (const OutputTensor &tensor : request.folded->tensors()) {
        if (tensor.file != file)
            continue;
        if (stop.stop_requested())
            return cancelled(request.out);
        if (progress)
            progress({.stage = "apply", .done = done++, .total = static_cast<double>(request.folded->tensors().size()), .unit = "tensors"});
        auto bytes = request.folded->bytesOf(tensor);
        if (!bytes)
            return tl::make_unexpected(bytes.error());
        if (auto written = writer->writeTensor(tensor.slot.name, *bytes); !written)
            return tl::make_unexpected(written.error());
    }
    return writer;
}

/// Removes a folder this run created when it did not fill it.
struct FolderGuard {
    std::string folder;
    bool keep = false;
    ~FolderGuard()
    {
        std::error_code ignored;
        if (!folder.empty() && !keep)
            fs::remove(folder, ignored); // only when empty
    }
};

} // namespace

Expected<void> checkOutput(const CopyRequest &request)
{
    std::error_code code;
    if (fs::equivalent(request.out, request.input->path, code))
        return dataError(request.out, "is the input itself", "expected another name; inputs are never modified");
    if (request.input->kind == "folder" && fs::exists(request.out, code) && (!fs::is_directory(request.out, code) || !fs::is_empty(request.out, code)))
        return dataError(request.out, "exists and is not an empty folder", "expected a new or empty folder for the shards");
    if (request.input->kind != "folder" && fs::is_directory(request.out, code))
        return dataError(request.out, "is a folder", "expected a file name, as the checkpoint is one file");
    std::uintmax_t needed = kSpareBytes;
    for (const OutputTensor &tensor : request.folded->tensors()) {
        if (safetensorsName(tensor.slot.type).empty())
            return dataError(tensor.slot.name, "has a data type that cannot be copied", "expected an unquantized checkpoint");
        needed += tensor.bytes();
    }
    const fs::space_info space = fs::space(folderOf(request.out), code);
    if (!code && space.available < needed)
        return machineError(request.out, "the disk has " + std::to_string(space.available >> 20) + " MiB free, " + std::to_string(needed >> 20) +
                            " MiB are needed", "expected room for the whole checkpoint");
    return {};
}

Expected<void> copyCheckpoint(const CopyRequest &request, std::stop_token stop, const ProgressSink &progress)
{
    FolderGuard guard;
    if (request.input->kind == "folder") {
        std::error_code code;
        guard.folder = fs::create_directory(request.out, code) ? request.out : std::string();
        if (code)
            return dataError(request.out, "cannot be created: " + code.message(), "expected a folder that can be written");
    }
    std::vector<SafetensorsWriter> shards;
    double done = 0;
    for (const std::string &file : request.input->files) {
        auto shard = writeShard(request, file, stop, progress, done);
        if (!shard)
            return tl::make_unexpected(shard.error());
        shards.push_back(std::move(*shard));
    }
    if (auto companions = copyCompanions(request); !companions)
        return companions;
    for (SafetensorsWriter &shard : shards) {
        if (auto finished = shard.finish(); !finished)
            return finished;
    }
    guard.keep = true;
    return writeIndex(request);
}

} // namespace planish
