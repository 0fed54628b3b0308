// A comparison as text: one table per edge in ranking order, tie sets apart, token-dominated edges named, totals at the end.
#pragma once

#include <string>

#include "core/evaluate/compare.h"

namespace planish::cli {

std::string comparisonTable(const Comparison &comparison);

} // namespace planish::cli
