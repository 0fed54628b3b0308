#include "core/io/sharded_checkpoint.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/io/file_kind.h"
#include "core/io/printable.h"
#include "core/io/raw_file.h"
#include "core/io/safetensors.h"

namespace planish {

namespace {

namespace fs = std::filesystem;
constexpr std::string_view kIndexEnd = ".safetensors.index.json";

struct Folder {
    std::vector<std::string> shards, indices, pickles; ///< full paths, in name order
};

Folder listFolder(const std::string &path)
{
    Folder folder;
    std::error_code failed;
    for (fs::directory_iterator at(path, failed), end; !failed && at != end; at.increment(failed)) {
        const std::string name = at->path().string();
        const std::string extension = at->path().extension().string();
        if (name.ends_with(kIndexEnd))
            folder.indices.push_back(name);
        else if (extension == ".safetensors")
            folder.shards.push_back(name);
        else if (extension == ".bin" || extension == ".pt" || extension == ".pth")
            folder.pickles.push_back(name);
    }
    for (auto *names : {&folder.shards, &folder.indices, &folder.pickles})
        std::sort(names->begin(), names->end());
    return folder;
}

/// tensor -> shard, with duplicate names refused while parsing.
Expected<std::map<std::string, std::string>> readWeightMap(const std::string &index)
{
    constexpr std::uint64_t kLargest = std::uint64_t{100} << 20;
    const Expected<RawFile> file = RawFile::open(index);
    if (!file)
        return tl::make_unexpected(file.error());
    if (file->size() > kLargest)
        return dataError(index, "has " + std::to_string(file->size()) + " bytes", "an index of at most 100 MiB");
    std::string text(static_cast<std::size_t>(file->size()), '\0');
    if (Expected<void> read = file->read(0, std::as_writable_bytes(std::span(text.data(), text.size()))); !read)
        return tl::make_unexpected(read.error());
    std::set<std::string> names;
    std::string twice;
    const auto refuseRepeats = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json &parsed) {
        if (depth == 2 && event == nlohmann::json::parse_event_t::key && parsed.is_string())
            if (!names.insert(parsed.get<std::string>()).second)
                twice = parsed.get<std::string>();
        return true;
    };
    const nlohmann::json parsed = nlohmann::json::parse(text, refuseRepeats, false);
    if (!parsed.is_object() || !parsed.contains("weight_map") || !parsed["weight_map"].is_object())
        return dataError(index, "has no weight_map", "an index with weight_map: tensor -> shard");
    if (!twice.empty() && parsed["weight_map"].contains(twice))
        return dataError(index, "names tensor " + printable(twice) + " twice", "one shard for each tensor");
    std::map<std::string, std::string> map;
    for (const auto &[tensor, shard] : parsed["weight_map"].items()) {
        if (!shard.is_string() || shard.get<std::string>().find('/') != std::string::npos ||
            shard.get<std::string>().starts_with(".."))
            return dataError(index, "tensor " + printable(tensor) + " points to no file of this folder",
                             "the name of a shard beside the index");
        map.emplace(tensor, shard.get<std::string>());
    }
    return map;
}

void finish(CheckpointInfo &info)
{
    std::sort(info.tensors.begin(), info.tensors.end(),
              [](const StoredTensor &a, const StoredTensor &b) { return a.name < b.name; });
}

void addShard(CheckpointInfo &info, const std::string &file, SafetensorsHeader header)
{
    info.files.push_back(file);
    if (info.metadata.empty())
        info.metadata = std::move(header.metadata);
}

/// The index is authoritative: a tensor counts only in the shard it names.
Expected<CheckpointInfo> listIndexed(const std::string &path, const std::string &index)
{
    const Expected<std::map<std::string, std::string>> map = readWeightMap(index);
    if (!map)
        return tl::make_unexpected(map.error());
    CheckpointInfo info;
    info.path = path;
    info.kind = "folder";
    info.indexFile = index;
    std::set<std::string> shards;
    for (const auto &[tensor, shard] : *map)
        shards.insert(shard);
    std::set<std::string> found;
    for (const std::string &shard : shards) {
        const std::string file = (fs::path(index).parent_path() / shard).string();
        std::error_code ignored;
        if (!fs::exists(file, ignored))
            return dataError(index, "shard " + printable(shard) + " is missing", "the file beside the index");
        Expected<SafetensorsHeader> header = readSafetensorsHeader(file);
        if (!header)
            return tl::make_unexpected(header.error());
        for (StoredTensor &tensor : header->tensors) {
            const auto named = map->find(tensor.name);
            if (named == map->end())
                continue;
            if (named->second != shard)
                return dataError(index, "tensor " + printable(tensor.name) + " is also in shard " + printable(shard),
                                 "only in " + printable(named->second) + ", as the index says");
            found.insert(tensor.name);
            info.tensors.push_back(std::move(tensor));
        }
        addShard(info, file, std::move(*header));
    }
    for (const auto &[tensor, shard] : *map)
        if (found.count(tensor) == 0)
            return dataError(index, "tensor " + printable(tensor) + " is not in its shard " + printable(shard),
                             "a shard that holds it");
    finish(info);
    return info;
}

Expected<CheckpointInfo> listUnindexed(const std::string &path, const std::vector<std::string> &shards)
{
    CheckpointInfo info;
    info.path = path;
    info.kind = "folder";
    std::map<std::string, std::string> seen;
    for (const std::string &file : shards) {
        Expected<SafetensorsHeader> header = readSafetensorsHeader(file);
        if (!header)
            return tl::make_unexpected(header.error());
        for (StoredTensor &tensor : header->tensors) {
            const auto [first, isNew] = seen.emplace(tensor.name, file);
            if (!isNew)
                return dataError(path,
                                 "tensor " + printable(tensor.name) + " is in " + fs::path(first->second).filename().string() +
                                     " and in " + fs::path(file).filename().string(),
                                 "one file for each tensor, or an index that decides");
            info.tensors.push_back(std::move(tensor));
        }
        addShard(info, file, std::move(*header));
    }
    finish(info);
    return info;
}

} // namespace

Expected<CheckpointInfo> listShardedCheckpoint(const std::string &path)
{
    if (path.ends_with(kIndexEnd))
        return listIndexed(path, path);
    const Folder folder = listFolder(path);
    if (folder.indices.size() > 1)
        return dataError(path, "holds " + std::to_string(folder.indices.size()) + " index files",
                         "one *.safetensors.index.json, or the index itself as the path");
    if (!folder.indices.empty())
        return listIndexed(path, folder.indices.front());
    if (!folder.shards.empty())
        return listUnindexed(path, folder.shards);
    if (!folder.pickles.empty())
        return pickleError(folder.pickles.front());
    return dataError(path, "holds no *.safetensors", "a folder with a checkpoint");
}

Expected<CheckpointInfo> listSingleCheckpoint(const std::string &path)
{
    Expected<SafetensorsHeader> header = readSafetensorsHeader(path);
    if (!header)
        return tl::make_unexpected(header.error());
    CheckpointInfo info;
    info.path = path;
    info.kind = "file";
    info.tensors = std::move(header->tensors);
    addShard(info, path, std::move(*header));
    finish(info);
    return info;
}

} // namespace planish
