// The native layout planish-dump/1 (dump-format.md).
#pragma once

#include "core/io/layouts/layout.h"

namespace planish {

LayoutMatch recogniseNative(const FileStructure &structure);
/// Errors only when the file is of a newer format; bad parts are listed in `refused` and `notes`, the rest opens.
Expected<LayoutResult> readNative(const FileStructure &structure, BlockSource &source);

} // namespace planish
