// Inside core/io only: the dtype names of safetensors and their widths.
#pragma once

#include <optional>
#include <string_view>

#include "core/io/file_structure.h"

namespace planish {

struct SafetensorsDtype {
    std::string_view name;
    unsigned bits;
    StoredType type;
};
std::optional<SafetensorsDtype> safetensorsDtype(std::string_view name);

} // namespace planish
