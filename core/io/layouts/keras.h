// Keras and TensorFlow weights: kernels are [in, out] by the family, whatever their shape.
#pragma once

#include "core/io/layouts/layout.h"

namespace planish {

LayoutMatch recogniseKerasWeights(const FileStructure &structure);
LayoutMatch recogniseKerasModel(const FileStructure &structure);
LayoutMatch recogniseTfModel(const FileStructure &structure);
LayoutMatch recogniseKeras3(const FileStructure &structure);
Expected<LayoutResult> readKerasLegacy(const FileStructure &structure, BlockSource &source);
Expected<LayoutResult> readKeras3(const FileStructure &structure, BlockSource &source);

} // namespace planish
