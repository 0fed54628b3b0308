// TransformerLens run_with_cache dumps.
#pragma once

#include "core/io/layouts/layout.h"

namespace planish {

LayoutMatch recogniseTransformerLens(const FileStructure &structure);
Expected<LayoutResult> readTransformerLens(const FileStructure &structure, BlockSource &source);

} // namespace planish
