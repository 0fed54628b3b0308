// Inside core/io only: the attributes of an HDF5 object as values.
#pragma once

#include <cstdint>

#include "core/io/file_structure.h"

namespace planish {

/// All attributes that are text, numbers or short lists of them; references, compounds and oversized ones are left out. Under an
/// Hdf5Lock.
Attributes readAttributes(std::int64_t objectId);

} // namespace planish
