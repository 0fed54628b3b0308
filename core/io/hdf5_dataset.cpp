#include "core/io/hdf5_dataset.h"

#include <hdf5.h>

#include <algorithm>
#include <array>

#include "core/io/hdf5_attributes.h"
#include "core/io/hdf5_handle.h"
#include "core/io/hdf5_types.h"
#include "core/io/printable.h"

namespace planish {

namespace {

std::string gigabytes(std::uint64_t bytes)
{
    constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
    return bytes >= 10 * 1024 * kMiB ? std::to_string(bytes / (1024 * kMiB)) + " GiB" : std::to_string(bytes / kMiB) + " MiB";
}

std::string trustAdvice(const std::string &trustedFolder)
{
    return trustedFolder.empty() ? ": refused (pass --trust-links)" : ": refused (outside the folder of the file)";
}

/// Refuses raw data in other files unless each lies inside the trusted folder.
std::string externalRefusal(std::int64_t creation, const std::string &trustedFolder)
{
    const int count = H5Pget_external_count(creation);
    for (int i = 0; i < count; ++i) {
        std::array<char, 4096> name{};
        off_t offset = 0;
        hsize_t size = 0;
        H5Pget_external(creation, static_cast<unsigned>(i), name.size() - 1, name.data(), &offset, &size);
        if (trustedFolder.empty() || !insideFolder(trustedFolder, name.data()))
            return "external storage in " + printable(name.data()) + trustAdvice(trustedFolder);
    }
    return {};
}

std::string virtualRefusal(std::int64_t creation, const std::string &trustedFolder)
{
    std::size_t count = 0;
    H5Pget_virtual_count(creation, &count);
    for (std::size_t i = 0; i < count; ++i) {
        std::array<char, 4096> name{};
        H5Pget_virtual_filename(creation, i, name.data(), name.size() - 1);
        const bool ownFile = std::string_view(name.data()) == ".";
        if (!ownFile && (trustedFolder.empty() || !insideFolder(trustedFolder, name.data())))
            return "virtual dataset from " + printable(name.data()) + trustAdvice(trustedFolder);
    }
    return {};
}

/// Fills shape; a null dataspace is a refusal.
std::string readShape(std::int64_t dataset, DatasetInfo &info)
{
    const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
    if (!space)
        return "its dataspace cannot be read (" + hdf5Reason() + ")";
    if (H5Sget_simple_extent_type(space.get()) == H5S_NULL)
        return "null dataspace: it holds no data";
    std::array<hsize_t, H5S_MAX_RANK> dims{};
    const int rank = H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr);
    for (int i = 0; i < rank; ++i)
        info.shape.push_back(dims[static_cast<std::size_t>(i)]);
    return {};
}

std::string readFilters(std::int64_t creation, DescribedDataset &out)
{
    const bool floats = out.info.type == StoredType::F16 || out.info.type == StoredType::Bf16 ||
                        out.info.type == StoredType::F32 || out.info.type == StoredType::F64;
    std::string missing;
    for (const ChunkFilter &filter : chunkFilters(creation)) {
        FilterInfo info{filter.id, filterName(filter.id), isOwnFilter(filter.id) || H5Zfilter_avail(filter.id) > 0,
                        isLossyFilter(filter.id, filter.values, floats), filter.values};
        if (!info.available && missing.empty()) {
            const std::string package = filterPackage(filter.id);
            missing = "filter " + std::to_string(filter.id) + " (" + info.name +
                      ") is not available; rewrite the file with gzip" +
                      (package.empty() ? " where that filter is installed" : ", for example with the Python package " + package);
        }
        if (info.lossy)
            out.notes.push_back(out.info.path + ": lossy filter " + info.name + " (" + std::to_string(info.id) +
                                "): every maximum is biased by it");
        out.info.filters.push_back(std::move(info));
    }
    return missing;
}

std::string readChunks(std::int64_t creation, DescribedDataset &out)
{
    std::array<hsize_t, H5S_MAX_RANK> dims{};
    const int rank = H5Pget_chunk(creation, static_cast<int>(dims.size()), dims.data());
    std::vector<std::uint64_t> factors{out.info.elementBytes};
    for (int i = 0; i < rank; ++i)
        out.info.chunk.push_back(dims[static_cast<std::size_t>(i)]);
    factors.insert(factors.end(), out.info.chunk.begin(), out.info.chunk.end());
    unsigned options = 0;
    H5Pget_chunk_opts(creation, &options);
    out.info.bordersUnfiltered = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
    std::uint64_t bytes = 0;
    if (!productFits(factors, kChunkBudget, &bytes) || bytes == 0)
        return "chunk " + shapeText(out.info.chunk) + " is too large: " + gigabytes(bytes) + " exceed the budget of " +
               gigabytes(kChunkBudget) + " a chunk";
    return readFilters(creation, out);
}

/// Declared sizes that no honest file of this size can mean.
std::string sizeRefusal(const DatasetInfo &info)
{
    std::vector<std::uint64_t> factors = info.shape;
    if (std::find(factors.begin(), factors.end(), 0U) != factors.end())
        return {};
    factors.push_back(std::max<std::size_t>(info.elementBytes, 1));
    std::uint64_t bytes = 0;
    if (!productFits(factors, UINT64_MAX, &bytes))
        return "declared shape " + shapeText(info.shape) + " is too large: its bytes overflow 64 bits";
    if (bytes > kDatasetBudget)
        return "declared shape " + shapeText(info.shape) + " is too large: " + gigabytes(bytes) + " exceed the budget of " +
               gigabytes(kDatasetBudget);
    // Deflate packs 1032 : 1 at most, twice is already suspicious.
    const bool backed = info.storedBytes > 0 && bytes / 4096 <= info.storedBytes;
    if (bytes > kUnbackedBudget && !backed)
        return "declared shape " + shapeText(info.shape) + " is too large: " + gigabytes(bytes) +
               " of which the file holds only " + std::to_string(info.storedBytes) + " bytes exceed the budget of " +
               gigabytes(kUnbackedBudget);
    return {};
}

/// The fill value of numbers and opaque bytes; nothing when it is zero anyway.
void readFill(std::int64_t creation, std::int64_t type, DatasetInfo &info)
{
    constexpr std::size_t kLargest = 64;
    const bool plain = byteSize(info.type) > 0 || H5Tget_class(type) == H5T_OPAQUE;
    H5D_fill_value_t status = H5D_FILL_VALUE_UNDEFINED;
    if (!plain || info.elementBytes > kLargest || H5Pfill_value_defined(creation, &status) < 0 ||
        status != H5D_FILL_VALUE_USER_DEFINED)
        return;
    std::vector<std::byte> fill(info.elementBytes);
    if (H5Pget_fill_value(creation, type, fill.data()) >= 0 &&
        std::any_of(fill.begin(), fill.end(), [](std::byte b) { return b != std::byte{0}; }))
        info.fill = std::move(fill);
}

std::string readLayout(std::int64_t dataset, std::int64_t type, const std::string &trustedFolder, DescribedDataset &out)
{
    const Hdf5Handle creation(H5Dget_create_plist(dataset), H5Pclose);
    if (!creation)
        return "its storage cannot be read (" + hdf5Reason() + ")";
    const H5D_layout_t layout = H5Pget_layout(creation.get());
    if (layout == H5D_VIRTUAL)
        if (std::string refused = virtualRefusal(creation.get(), trustedFolder); !refused.empty())
            return refused;
    if (std::string refused = externalRefusal(creation.get(), trustedFolder); !refused.empty())
        return refused;
    if (std::string refused = readShape(dataset, out.info); !refused.empty())
        return refused;
    out.info.storedBytes = H5Dget_storage_size(dataset);
    readFill(creation.get(), type, out.info);
    if (layout == H5D_CHUNKED)
        if (std::string refused = readChunks(creation.get(), out); !refused.empty())
            return refused;
    if (layout == H5D_CONTIGUOUS && H5Pget_external_count(creation.get()) == 0) {
        const haddr_t offset = H5Dget_offset(dataset);
        out.info.offset = offset == HADDR_UNDEF ? -1 : static_cast<std::int64_t>(offset);
    }
    return layout == H5D_VIRTUAL ? std::string() : sizeRefusal(out.info);
}

} // namespace

std::vector<ChunkFilter> chunkFilters(std::int64_t creationList)
{
    std::vector<ChunkFilter> filters;
    const int count = H5Pget_nfilters(creationList);
    for (int i = 0; i < count; ++i) {
        std::array<unsigned, 64> values{};
        std::size_t valueCount = values.size();
        unsigned flags = 0;
        const H5Z_filter_t id =
            H5Pget_filter2(creationList, static_cast<unsigned>(i), &flags, &valueCount, values.data(), 0, nullptr, nullptr);
        valueCount = std::min(valueCount, values.size());
        filters.push_back({static_cast<int>(id), {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(valueCount)}});
    }
    return filters;
}

DescribedDataset describeDataset(std::int64_t dataset, const std::string &path, const std::string &trustedFolder)
{
    DescribedDataset out;
    out.info.path = path;
    const Hdf5Handle type(H5Dget_type(dataset), H5Tclose);
    if (!type) {
        out.refused = "its type cannot be read (" + hdf5Reason() + ")";
        return out;
    }
    const Hdf5Type described = describeType(type.get());
    out.info.type = described.type;
    out.info.order = described.order;
    out.info.elementBytes = described.elementBytes;
    out.info.typeText = described.text;
    out.info.members = described.members;
    out.info.attributes = readAttributes(dataset);
    out.refused = readLayout(dataset, type.get(), trustedFolder, out);
    return out;
}

} // namespace planish
