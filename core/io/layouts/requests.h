// Files that keep requests, samples or prompts apart: groups, datasets, phases, offsets, variable-length rows.
#pragma once

#include "core/io/layouts/layout.h"

namespace planish {

LayoutMatch recogniseSampleGroups(const FileStructure &structure);
LayoutMatch recognisePromptVectors(const FileStructure &structure);
LayoutMatch recogniseSentences(const FileStructure &structure);
/// The three of them: siblings that differ by a number are requests in the order of the number.
Expected<LayoutResult> readNumbered(const FileStructure &structure, BlockSource &source);

LayoutMatch recognisePhases(const FileStructure &structure);
Expected<LayoutResult> readPhases(const FileStructure &structure, BlockSource &source);

LayoutMatch recogniseOffsets(const FileStructure &structure);
Expected<LayoutResult> readOffsets(const FileStructure &structure, BlockSource &source);

/// Variable-length rows are refused by name: their shape is not stored.
LayoutMatch recogniseVariableLength(const FileStructure &structure);
Expected<LayoutResult> readVariableLength(const FileStructure &structure, BlockSource &source);

} // namespace planish
