// Axes stated by the user in a --layout file: datasets: [{path, axes: [...], split: [...], mask: PATH}].
#pragma once

#include <string>

#include "core/io/layouts/layout.h"

namespace planish {

/// Reads only the datasets the file lists. `axes`: batch, layer, token, head, head_dim, channel for edges; out, in for weights.
/// `split`: [columns of channels, mask, id]. `mask`: path of a dataset with one entry per row. Errors name the file and its
/// entry.
Expected<LayoutResult> readStatedLayout(const FileStructure &structure, BlockSource &source, const std::string &layoutFile);

} // namespace planish
