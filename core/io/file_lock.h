// Lock failures of HDF5 in words: who may hold the file and how to read it anyway.
#pragma once

#include <string>
#include <string_view>

#include "core/io/error.h"

namespace planish {

/// True when the library's reason speaks of a lock or of a file left open for writing.
bool isLockFailure(std::string_view reason);
/// Names the file, the likely holder and --no-lock.
tl::unexpected<Error> lockError(const std::string &file, std::string_view reason);

} // namespace planish
