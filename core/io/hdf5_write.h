// Inside core/io only: making types, attributes and datasets of an HDF5 file that is being written. All under an Hdf5Lock.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/io/error.h"
#include "core/io/file_structure.h"
#include "core/io/hdf5_handle.h"

namespace planish {

/// Little-endian file type of a stored type; bf16 and fp8 are unsigned integers (an attribute names them). Invalid for Text and
/// Other.
Hdf5Handle fileType(StoredType type);

/// Text as variable-length UTF-8, numbers as int64 and float64.
bool writeAttribute(std::int64_t objectId, const std::string &name, const AttributeValue &value);

struct NewDataset {
    std::string path;
    std::vector<std::uint64_t> shape;
    StoredType type = StoredType::F32;
    std::vector<std::uint64_t> chunk; ///< empty: contiguous
    int gzipLevel = 0;                ///< > 0 with chunk: shuffle and deflate
};
/// Intermediate groups are made. Invalid handle on failure.
Hdf5Handle createDataset(std::int64_t fileId, const NewDataset &dataset);
/// Rows [begin, begin + rows) along axis 0 from stored bytes (the file type's own layout).
bool writeRows(std::int64_t dataset, StoredType type, const std::vector<std::uint64_t> &shape, std::uint64_t begin,
               std::uint64_t rows, std::span<const std::byte> bytes);
bool writeTexts(std::int64_t fileId, const std::string &path, const std::vector<std::string> &texts);
/// The group, made if it is not there.
Hdf5Handle openOrCreateGroup(std::int64_t fileId, const std::string &path);

/// The library's failure to write as an error: a full disk is a machine error.
tl::unexpected<Error> hdf5WriteError(const std::string &file, const std::string &path);

} // namespace planish
