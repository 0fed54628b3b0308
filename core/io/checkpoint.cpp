#include "core/io/checkpoint.h"

#include <algorithm>
#include <filesystem>

#include "core/io/file_kind.h"
#include "core/io/hdf5_checkpoint.h"
#include "core/io/model_config.h"
#include "core/io/number_decode.h"
#include "core/io/printable.h"
#include "core/io/raw_file.h"
#include "core/io/sharded_checkpoint.h"

namespace planish {

namespace {

namespace fs = std::filesystem;

class SafetensorsCheckpoint final : public Checkpoint {
public:
    SafetensorsCheckpoint(CheckpointInfo info, std::map<std::string, RawFile> files)
        : m_info(std::move(info)), m_files(std::move(files))
    {
    }

    const CheckpointInfo &info() const override { return m_info; }

    Expected<std::vector<std::byte>> readRaw(const StoredTensor &tensor) const override
    {
        const auto file = m_files.find(tensor.file);
        if (file == m_files.end() || tensor.bytes > file->second.size())
            return dataError(m_info.path, "has no tensor " + printable(tensor.name), "a tensor of this checkpoint");
        std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes));
        if (Expected<void> read = file->second.read(tensor.offset, bytes); !read)
            return tl::make_unexpected(read.error());
        return bytes;
    }

    Expected<MatrixD> readMatrix(const StoredTensor &tensor) const override
    {
        const Expected<std::vector<std::byte>> bytes = readRaw(tensor);
        if (!bytes)
            return tl::make_unexpected(bytes.error());
        return matrixFromBytes(tensor, *bytes);
    }

private:
    CheckpointInfo m_info;
    std::map<std::string, RawFile> m_files; ///< opened once: what was listed is what is read
};

Expected<std::shared_ptr<const Checkpoint>> openSafetensors(Expected<CheckpointInfo> info)
{
    if (!info)
        return tl::make_unexpected(info.error());
    std::map<std::string, RawFile> files;
    for (const std::string &name : info->files) {
        Expected<RawFile> file = RawFile::open(name);
        if (!file)
            return tl::make_unexpected(file.error());
        files.emplace(name, std::move(*file));
    }
    return std::shared_ptr<const Checkpoint>(std::make_shared<SafetensorsCheckpoint>(std::move(*info), std::move(files)));
}

/// config.json given by name, inside the folder, or beside the file.
std::string configFor(const std::string &path, const std::string &configFile)
{
    if (!configFile.empty())
        return configFile;
    std::error_code ignored;
    const fs::path folder = fs::is_directory(path, ignored) ? fs::path(path) : fs::path(path).parent_path();
    const fs::path beside = folder / "config.json";
    return fs::is_regular_file(beside, ignored) ? beside.string() : std::string();
}

Expected<CheckpointInfo> withConfig(Expected<CheckpointInfo> info, const std::string &configFile)
{
    if (!info)
        return info;
    const std::string config = configFor(info->path, configFile);
    if (config.empty())
        return info;
    Expected<ModelInfo> model = readModelConfig(config);
    if (!model)
        return tl::make_unexpected(model.error());
    info->config = std::move(*model);
    return info;
}

} // namespace

const StoredTensor *CheckpointInfo::find(std::string_view name) const
{
    const auto found = std::lower_bound(tensors.begin(), tensors.end(), name,
                                        [](const StoredTensor &tensor, std::string_view wanted) { return tensor.name < wanted; });
    return found != tensors.end() && found->name == name ? &*found : nullptr;
}

Expected<MatrixD> matrixFromBytes(const StoredTensor &tensor, std::span<const std::byte> bytes)
{
    const std::size_t size = byteSize(tensor.type);
    if (!isNumeric(tensor.type) || size == 0)
        return dataError(tensor.file, "tensor " + printable(tensor.name) + " has a type that is not read as numbers",
                         "float16, bfloat16, float32, float64, fp8 or integers");
    const std::size_t count = bytes.size() / size;
    const std::size_t rows = tensor.shape.size() < 2 ? 1 : static_cast<std::size_t>(tensor.shape[0]);
    MatrixD matrix(rows, rows > 0 ? count / rows : 0);
    widen(bytes.first(matrix.size() * size), tensor.type, ByteOrder::Little, matrix.values());
    return matrix;
}

Expected<std::shared_ptr<const Checkpoint>> openCheckpoint(const std::string &path, const std::string &configFile)
{
    if (path.ends_with(".safetensors.index.json"))
        return openSafetensors(withConfig(listShardedCheckpoint(path), configFile));
    const Expected<FileKind> kind = fileKindOf(path);
    if (!kind)
        return tl::make_unexpected(kind.error());
    switch (*kind) {
    case FileKind::Folder:
        return openSafetensors(withConfig(listShardedCheckpoint(path), configFile));
    case FileKind::Safetensors:
        return openSafetensors(withConfig(listSingleCheckpoint(path), configFile));
    case FileKind::Hdf5:
        return openHdf5Checkpoint(path, configFor(path, configFile));
    case FileKind::Pickle:
        return pickleError(path);
    case FileKind::Gguf:
    case FileKind::ImatrixDat:
    case FileKind::Unknown:
        break;
    }
    return dataError(path, "is no checkpoint this program reads", "a safetensors file, a folder with its index, or HDF5");
}

} // namespace planish
