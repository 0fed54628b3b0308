// What can be known about an HDF5 file before libhdf5 sees it: its signature and the length its superblock states.
#pragma once

#include "core/io/error.h"
#include "core/io/raw_file.h"

namespace planish {

/// Errors: not HDF5, truncated ("holds N of M bytes"); each names the file.
Expected<void> checkSignature(const RawFile &file);

} // namespace planish
