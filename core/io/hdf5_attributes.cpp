#include "core/io/hdf5_attributes.h"

#include <hdf5.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/io/hdf5_handle.h"
#include "core/io/hdf5_types.h"

namespace planish {

namespace {

constexpr std::size_t kMostElements = std::size_t{1} << 20;
constexpr std::size_t kMostBytes = std::size_t{16} << 20;

struct Extent {
    std::size_t count = 0;
    bool scalar = false;
};

std::optional<Extent> extentOf(std::int64_t attribute)
{
    const Hdf5Handle space(H5Aget_space(attribute), H5Sclose);
    if (!space || H5Sget_simple_extent_type(space.get()) == H5S_NULL)
        return std::nullopt;
    const hssize_t points = H5Sget_simple_extent_npoints(space.get());
    if (points < 0 || static_cast<std::size_t>(points) > kMostElements)
        return std::nullopt;
    return Extent{static_cast<std::size_t>(points), H5Sget_simple_extent_type(space.get()) == H5S_SCALAR};
}

std::optional<std::vector<std::string>> readVariableTexts(std::int64_t attribute, std::int64_t type, std::size_t count)
{
    std::vector<char *> pointers(std::max<std::size_t>(count, 1), nullptr);
    if (H5Aread(attribute, type, pointers.data()) < 0)
        return std::nullopt;
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < count; ++i) {
        texts.emplace_back(pointers[i] != nullptr ? pointers[i] : "");
        H5free_memory(pointers[i]);
    }
    return texts;
}

std::optional<std::vector<std::string>> readFixedTexts(std::int64_t attribute, std::int64_t type, std::size_t count)
{
    const std::size_t size = H5Tget_size(type);
    if (size == 0 || size > kMostBytes / std::max<std::size_t>(count, 1))
        return std::nullopt;
    std::vector<char> bytes(size * std::max<std::size_t>(count, 1));
    if (H5Aread(attribute, type, bytes.data()) < 0)
        return std::nullopt;
    const bool spacePadded = H5Tget_strpad(type) == H5T_STR_SPACEPAD;
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < count; ++i) {
        const char *from = bytes.data() + i * size;
        std::string text(from, ::strnlen(from, size));
        while (spacePadded && !text.empty() && text.back() == ' ')
            text.pop_back();
        texts.push_back(std::move(text));
    }
    return texts;
}

template <class T> std::optional<std::vector<T>> readNumbers(std::int64_t attribute, std::int64_t memoryType, std::size_t count)
{
    std::vector<T> values(std::max<std::size_t>(count, 1));
    if (H5Aread(attribute, memoryType, values.data()) < 0)
        return std::nullopt;
    values.resize(count);
    return values;
}

/// One element of a scalar or one-element list is still told apart: a list of one stays a list.
template <class T> std::optional<AttributeValue> asValue(const std::optional<std::vector<T>> &values, const Extent &extent)
{
    if (!values)
        return std::nullopt;
    if (extent.scalar && !values->empty())
        return AttributeValue(values->front());
    return AttributeValue(*values);
}

std::optional<AttributeValue> readValue(std::int64_t attribute)
{
    const std::optional<Extent> extent = extentOf(attribute);
    const Hdf5Handle type(H5Aget_type(attribute), H5Tclose);
    if (!extent || !type)
        return std::nullopt;
    switch (H5Tget_class(type.get())) {
    case H5T_STRING:
        return asValue(H5Tis_variable_str(type.get()) > 0 ? readVariableTexts(attribute, type.get(), extent->count)
                                                          : readFixedTexts(attribute, type.get(), extent->count),
                       *extent);
    case H5T_INTEGER:
        return asValue(readNumbers<std::int64_t>(attribute, H5T_NATIVE_INT64, extent->count), *extent);
    case H5T_FLOAT:
        return asValue(readNumbers<double>(attribute, H5T_NATIVE_DOUBLE, extent->count), *extent);
    case H5T_ENUM: {
        const Hdf5Type described = describeType(type.get());
        if (described.type != StoredType::Bool)
            return std::nullopt;
        const auto flags = readNumbers<std::int8_t>(attribute, type.get(), extent->count);
        if (!flags)
            return std::nullopt;
        return asValue(std::optional(std::vector<std::int64_t>(flags->begin(), flags->end())), *extent);
    }
    default:
        return std::nullopt;
    }
}

herr_t collectName(hid_t, const char *name, const H5A_info_t *, void *names)
{
    static_cast<std::vector<std::string> *>(names)->emplace_back(name);
    return 0;
}

} // namespace

Attributes readAttributes(std::int64_t objectId)
{
    std::vector<std::string> names;
    hsize_t position = 0;
    H5Aiterate2(objectId, H5_INDEX_NAME, H5_ITER_NATIVE, &position, collectName, &names);
    Attributes attributes;
    for (const std::string &name : names) {
        const Hdf5Handle attribute(H5Aopen(objectId, name.c_str(), H5P_DEFAULT), H5Aclose);
        if (!attribute)
            continue;
        if (std::optional<AttributeValue> value = readValue(attribute.get()))
            attributes.emplace(name, std::move(*value));
    }
    return attributes;
}

} // namespace planish
