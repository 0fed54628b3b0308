// PyTorch: module inputs and outputs as groups, state dicts flat or nested, GPT-2 with its Conv1D weights.
#pragma once

#include "core/io/layouts/layout.h"

namespace planish {

LayoutMatch recogniseModules(const FileStructure &structure);
LayoutMatch recogniseStateFlat(const FileStructure &structure);
LayoutMatch recogniseStateNested(const FileStructure &structure);
LayoutMatch recogniseConv1d(const FileStructure &structure);
/// All of them: module inputs become edges, ".weight" and ".bias" become tensors.
Expected<LayoutResult> readTorch(const FileStructure &structure, BlockSource &source);

} // namespace planish
