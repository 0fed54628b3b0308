#include "core/io/hdf5_write.h"

#include <hdf5.h>

#include <algorithm>
#include <type_traits>

namespace planish {

namespace {

Hdf5Handle halfType()
{
    Hdf5Handle type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
    // Fields first: the size can only shrink to what they leave free.
    H5Tset_fields(type.get(), 15, 10, 5, 0, 10);
    H5Tset_size(type.get(), 2);
    H5Tset_ebias(type.get(), 15);
    return type;
}

hid_t integerOrFloat(StoredType type)
{
    switch (type) {
    case StoredType::F32:
        return H5T_IEEE_F32LE;
    case StoredType::F64:
        return H5T_IEEE_F64LE;
    case StoredType::I8:
        return H5T_STD_I8LE;
    case StoredType::I16:
        return H5T_STD_I16LE;
    case StoredType::U16:
    case StoredType::Bf16:
        return H5T_STD_U16LE;
    case StoredType::I32:
        return H5T_STD_I32LE;
    case StoredType::U32:
        return H5T_STD_U32LE;
    case StoredType::I64:
        return H5T_STD_I64LE;
    case StoredType::U64:
        return H5T_STD_U64LE;
    case StoredType::Text:
    case StoredType::Other:
        return -1;
    default:
        return H5T_STD_U8LE;
    }
}

Hdf5Handle textType()
{
    Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type.get(), H5T_VARIABLE);
    H5Tset_cset(type.get(), H5T_CSET_UTF8);
    return type;
}

std::vector<const char *> pointersTo(const std::vector<std::string> &texts)
{
    std::vector<const char *> pointers;
    for (const std::string &text : texts)
        pointers.push_back(text.c_str());
    return pointers;
}

Hdf5Handle spaceOf(std::size_t count, bool scalar)
{
    const hsize_t extent = count;
    return Hdf5Handle(scalar ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &extent, nullptr), H5Sclose);
}

bool writeValues(std::int64_t objectId, const std::string &name, std::int64_t stored, std::int64_t memory,
                 const Hdf5Handle &space, const void *values, std::size_t count)
{
    if (H5Aexists(objectId, name.c_str()) > 0)
        H5Adelete(objectId, name.c_str());
    const Hdf5Handle attribute(H5Acreate2(objectId, name.c_str(), stored, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    return attribute && (count == 0 || H5Awrite(attribute.get(), memory, values) >= 0);
}

bool writeTextAttribute(std::int64_t objectId, const std::string &name, const std::vector<std::string> &texts, bool scalar)
{
    const Hdf5Handle type = textType();
    const std::vector<const char *> pointers = pointersTo(texts);
    return writeValues(objectId, name, type.get(), type.get(), spaceOf(texts.size(), scalar), pointers.data(), texts.size());
}

template <class T> bool writeNumbers(std::int64_t objectId, const std::string &name, std::span<const T> values, bool scalar)
{
    const bool whole = std::is_integral_v<T>;
    return writeValues(objectId, name, whole ? H5T_STD_I64LE : H5T_IEEE_F64LE, whole ? H5T_NATIVE_INT64 : H5T_NATIVE_DOUBLE,
                       spaceOf(values.size(), scalar), values.data(), values.size());
}

Hdf5Handle linkCreation()
{
    Hdf5Handle list(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    H5Pset_create_intermediate_group(list.get(), 1);
    H5Pset_char_encoding(list.get(), H5T_CSET_UTF8);
    return list;
}

} // namespace

Hdf5Handle fileType(StoredType type)
{
    if (type == StoredType::F16)
        return halfType();
    const hid_t known = integerOrFloat(type);
    return known < 0 ? Hdf5Handle() : Hdf5Handle(H5Tcopy(known), H5Tclose);
}

bool writeAttribute(std::int64_t objectId, const std::string &name, const AttributeValue &value)
{
    return std::visit(
        [&](const auto &held) {
            using T = std::decay_t<decltype(held)>;
            if constexpr (std::is_same_v<T, std::string>)
                return writeTextAttribute(objectId, name, {held}, true);
            else if constexpr (std::is_same_v<T, std::vector<std::string>>)
                return writeTextAttribute(objectId, name, held, false);
            else if constexpr (std::is_arithmetic_v<T>)
                return writeNumbers(objectId, name, std::span<const T>(&held, 1), true);
            else
                return writeNumbers(objectId, name, std::span<const typename T::value_type>(held), false);
        },
        value);
}

Hdf5Handle createDataset(std::int64_t fileId, const NewDataset &dataset)
{
    const Hdf5Handle type = fileType(dataset.type);
    const std::vector<hsize_t> dims(dataset.shape.begin(), dataset.shape.end());
    const Hdf5Handle space(
        dims.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose);
    const Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    std::size_t cache = 0;
    if (!dataset.chunk.empty()) {
        const std::vector<hsize_t> chunk(dataset.chunk.begin(), dataset.chunk.end());
        H5Pset_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data());
        std::uint64_t elements = 0;
        productFits(dataset.chunk, UINT64_MAX, &elements);
        // A chunk that does not fit the cache would be packed anew for every few rows.
        cache = std::max<std::size_t>(std::size_t{1} << 20, 2 * static_cast<std::size_t>(elements) * byteSize(dataset.type));
        if (dataset.gzipLevel > 0) {
            H5Pset_shuffle(creation.get());
            H5Pset_deflate(creation.get(), static_cast<unsigned>(dataset.gzipLevel));
        }
    }
    const Hdf5Handle link = linkCreation();
    const Hdf5Handle access = datasetAccess({}, cache);
    return Hdf5Handle(H5Dcreate2(fileId, dataset.path.c_str(), type.get(), space.get(), link.get(), creation.get(), access.get()),
                      H5Dclose);
}

bool writeRows(std::int64_t dataset, StoredType type, const std::vector<std::uint64_t> &shape, std::uint64_t begin,
               std::uint64_t rows, std::span<const std::byte> bytes)
{
    const Hdf5Handle memoryType = fileType(type);
    if (shape.empty())
        return H5Dwrite(dataset, memoryType.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) >= 0;
    if (bytes.empty())
        return true;
    const Hdf5Handle fileSpace(H5Dget_space(dataset), H5Sclose);
    std::vector<hsize_t> start(shape.size(), 0);
    std::vector<hsize_t> count(shape.begin(), shape.end());
    start[0] = begin;
    count[0] = rows;
    const Hdf5Handle memorySpace(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose);
    return H5Sselect_hyperslab(fileSpace.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr) >= 0 &&
           H5Dwrite(dataset, memoryType.get(), memorySpace.get(), fileSpace.get(), H5P_DEFAULT, bytes.data()) >= 0;
}

bool writeTexts(std::int64_t fileId, const std::string &path, const std::vector<std::string> &texts)
{
    const Hdf5Handle type = textType();
    const Hdf5Handle space = spaceOf(texts.size(), false);
    const Hdf5Handle link = linkCreation();
    const Hdf5Handle dataset(H5Dcreate2(fileId, path.c_str(), type.get(), space.get(), link.get(), H5P_DEFAULT, H5P_DEFAULT),
                             H5Dclose);
    const std::vector<const char *> pointers = pointersTo(texts);
    return dataset && (texts.empty() || H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()) >= 0);
}

Hdf5Handle openOrCreateGroup(std::int64_t fileId, const std::string &path)
{
    if (path == "/" || H5Lexists(fileId, path.c_str(), H5P_DEFAULT) > 0)
        return Hdf5Handle(H5Oopen(fileId, path.c_str(), H5P_DEFAULT), H5Oclose);
    const Hdf5Handle link = linkCreation();
    return Hdf5Handle(H5Gcreate2(fileId, path.c_str(), link.get(), H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
}

tl::unexpected<Error> hdf5WriteError(const std::string &file, const std::string &path)
{
    const std::string reason = hdf5Reason();
    const bool machine = reason.find("No space left") != std::string::npos || reason.find("errno = 28") != std::string::npos ||
                         reason.find("Disk quota") != std::string::npos || reason.find("Input/output error") != std::string::npos;
    const std::string what = (path.empty() ? std::string() : path + " ") + "cannot be written (" + reason + ")";
    if (machine)
        return machineError(file, what, "a disk with enough free space");
    return dataError(file, what, "a folder that exists and may be written");
}

} // namespace planish
