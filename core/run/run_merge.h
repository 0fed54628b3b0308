// The verb `merge`: saved statistics of several runs as if all rows had been seen in one pass.
#pragma once

#include <string>
#include <vector>

#include "core/run/engine.h"

namespace planish {

/// Reads and merges `.stats` files; different tau or widths are refused by name. Saves the result when `out` is not empty.
Expected<Analysis> mergeStatisticsFiles(const std::vector<std::string> &files, const std::string &out);

} // namespace planish
