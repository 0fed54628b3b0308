// Row numbers of fused tensors as family files write them: "q+2*kv". Numbers, names, + - * and brackets, nothing else. names.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/io/dump.h"
#include "core/io/error.h"

namespace planish {

using RowVariables = std::map<std::string, std::int64_t, std::less<>>;

/// q, kv, hidden, ffn, heads, kv_heads, head_dim as far as the model states them. `q` = heads * head_dim.
RowVariables rowVariables(const ModelInfo &model);

/// The value. Errors (subject `where`): a syntax fault, or a name that has no value in `variables`.
Expected<std::int64_t> evaluateRows(std::string_view expression, const RowVariables &variables, const std::string &where);

} // namespace planish
