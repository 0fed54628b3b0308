// Dumps kept in HDF5: the layout says what the file holds, the block source gives the numbers.
#pragma once

#include <memory>
#include <string>

#include "core/io/dump.h"

namespace planish {

Expected<std::shared_ptr<const Dump>> openHdf5Dump(const std::string &file, const OpenOptions &options,
                                                   const std::string &layoutFile);

} // namespace planish
