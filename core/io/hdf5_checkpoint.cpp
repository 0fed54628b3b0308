#include "core/io/hdf5_checkpoint.h"

#include <algorithm>
#include <mutex>

#include "core/io/hdf5_remote.h"
#include "core/io/layouts/stored_dtype.h"
#include "core/io/model_config.h"
#include "core/io/number_decode.h"
#include "core/io/printable.h"

namespace planish {

namespace {

class Hdf5Checkpoint final : public Checkpoint {
public:
    Hdf5Checkpoint(CheckpointInfo info, std::map<std::string, DatasetInfo> datasets, std::unique_ptr<BlockSource> source)
        : m_info(std::move(info)), m_datasets(std::move(datasets)), m_source(std::move(source))
    {
    }

    const CheckpointInfo &info() const override { return m_info; }

    Expected<std::vector<std::byte>> readRaw(const StoredTensor &tensor) const override
    {
        const auto found = m_datasets.find(tensor.name);
        if (found == m_datasets.end())
            return dataError(m_info.path, "has no tensor " + printable(tensor.name), "a tensor of this checkpoint");
        const DatasetInfo &dataset = found->second;
        std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes));
        const std::uint64_t rows = dataset.shape.empty() ? 1 : dataset.shape[0];
        const std::lock_guard lock(m_mutex);
        if (Expected<void> read = m_source->readRows(dataset, 0, rows, bytes); !read)
            return tl::make_unexpected(read.error());
        if (dataset.order == ByteOrder::Big)
            swapBytes(bytes, dataset.elementBytes);
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
    std::map<std::string, DatasetInfo> m_datasets;
    std::unique_ptr<BlockSource> m_source;
    mutable std::mutex m_mutex;
};

/// Name of a dataset as a tensor; empty when it is none (activations, token table).
std::string tensorName(const std::string &path, bool native)
{
    if (!native) {
        std::string name = path.substr(1);
        std::replace(name.begin(), name.end(), '/', '.');
        return name;
    }
    for (const std::string_view group : {"/weights/", "/norms/"})
        if (path.starts_with(group))
            return path.substr(group.size());
    constexpr std::string_view kBiases = "/biases/";
    return path.starts_with(kBiases) ? path.substr(kBiases.size()) + ".bias" : std::string();
}

bool isNativeDump(const FileStructure &structure)
{
    return structure.groups.count("/edges") > 0 || structure.groups.count("/weights") > 0;
}

} // namespace

Expected<std::shared_ptr<const Checkpoint>> openHdf5Checkpoint(const std::string &path, const std::string &configFile)
{
    Expected<OpenedHdf5> opened = openHdf5(path, {});
    if (!opened)
        return tl::make_unexpected(opened.error());
    CheckpointInfo info;
    info.path = path;
    info.kind = "hdf5";
    info.files = {path};
    if (!configFile.empty()) {
        Expected<ModelInfo> model = readModelConfig(configFile);
        if (!model)
            return tl::make_unexpected(model.error());
        info.config = std::move(*model);
    }
    std::map<std::string, DatasetInfo> datasets;
    std::vector<std::string> notes;
    const bool native = isNativeDump(opened->structure);
    for (const DatasetInfo &listed : opened->structure.datasets) {
        const std::string name = tensorName(listed.path, native);
        const DatasetInfo dataset = withStoredDtype(listed, notes);
        if (name.empty() || !isNumeric(dataset.type))
            continue;
        std::vector<std::uint64_t> factors = dataset.shape;
        factors.push_back(dataset.elementBytes);
        std::uint64_t bytes = 0;
        productFits(factors, UINT64_MAX, &bytes);
        if (datasets.emplace(name, dataset).second)
            info.tensors.push_back({name, path, dataset.shape, dataset.type,
                                    static_cast<std::uint64_t>(std::max<std::int64_t>(dataset.offset, 0)), bytes});
    }
    if (info.tensors.empty())
        return dataError(path, "holds no tensors", "weights in /weights, or matrices named by their paths");
    std::sort(info.tensors.begin(), info.tensors.end(),
              [](const StoredTensor &a, const StoredTensor &b) { return a.name < b.name; });
    return std::shared_ptr<const Checkpoint>(
        std::make_shared<Hdf5Checkpoint>(std::move(info), std::move(datasets), std::move(opened->source)));
}

} // namespace planish
