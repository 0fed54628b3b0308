// Inside core/io only: what an HDF5 datatype means, from its fields, never by comparing type ids (formats.md 7.2).
#pragma once

#include <cstdint>
#include <string>

#include "core/io/file_structure.h"

namespace planish {

struct Hdf5Type {
    StoredType type = StoredType::Other;
    ByteOrder order = ByteOrder::Little;
    std::size_t elementBytes = 0;
    std::string text;          ///< "float16", "compound {a, b}", "object reference" …
    bool variableText = false; ///< Text stored in the global heap
    std::vector<MemberInfo> members; ///< of a compound, those that are numbers
};

/// Call under an Hdf5Lock.
Hdf5Type describeType(std::int64_t typeId);

} // namespace planish
