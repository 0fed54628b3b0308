// Dumps of any container: the layout says what the file holds, the block source gives the numbers.
#pragma once

#include <memory>
#include <string>

#include "core/io/block_source.h"
#include "core/io/dump.h"

namespace planish {

/// Recognises the layout, or takes the axes of `layoutFile` (empty: none).
Expected<std::shared_ptr<const Dump>> openLayoutDump(const FileStructure &structure, std::unique_ptr<BlockSource> source,
                                                     const std::string &layoutFile);

} // namespace planish
