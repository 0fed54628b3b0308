// Arrays under any name: one per layer, stacked over layers, batched, split into heads, with appended columns or labelled axes.
#pragma once

#include "core/io/layouts/foreign_reader.h"
#include "core/io/layouts/layout.h"

namespace planish {

LayoutMatch recognisePerLayer(const FileStructure &structure);
LayoutMatch recognisePerLayerDotted(const FileStructure &structure);
LayoutMatch recogniseTransposed(const FileStructure &structure);
LayoutMatch recogniseLayersFirst(const FileStructure &structure);
LayoutMatch recogniseLayersMiddle(const FileStructure &structure);
LayoutMatch recogniseBatchSeq(const FileStructure &structure);
LayoutMatch recogniseHeads(const FileStructure &structure);
LayoutMatch recogniseAppendedColumns(const FileStructure &structure);
LayoutMatch recogniseLabelledAxes(const FileStructure &structure);
/// Only arrays whose axes nothing decides: reading is refused with both readings.
LayoutMatch recogniseAmbiguous(const FileStructure &structure);

/// Reads every array by its own form; arrays that stay open are refused by path, an error when none is left.
Expected<LayoutResult> readArrays(const FileStructure &structure, BlockSource &source);
/// The same into a reader that a container layout has begun; returns how many edges there are afterwards.
Expected<void> addArrays(ForeignReader &reader);

} // namespace planish
