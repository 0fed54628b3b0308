// What the numbers of a dataset mean when its type alone does not say: bf16 as uint16 or opaque, fp8 as uint8, named by an attribute.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/file_structure.h"

namespace planish {

/// "bfloat16", "torch.bfloat16", "bf16", "F16", "float8_e4m3fn" … ; nothing when unknown.
std::optional<StoredType> storedTypeByName(std::string_view name);

/// The dataset with its type replaced where an attribute (stored_dtype, dtype, torch_dtype, original_dtype) names one of the same width
/// that the stored integers or opaque bytes hold. A contradiction is noted and the stored type wins.
DatasetInfo withStoredDtype(const DatasetInfo &dataset, std::vector<std::string> &notes);

} // namespace planish
