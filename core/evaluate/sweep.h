// One parameter of a candidate set to a value: what `sweep --param NAME` and the window's sliders vary. cli.md "sweep".
#pragma once

#include <string>

#include "core/methods/method_table.h"

namespace planish {

/// `parameter` is a method parameter (`alpha`, `B.alpha`, `2.alpha`), `seed`, or act|weight.bits|clip|group. Usage errors name
/// the parameter and what it accepts.
Expected<Candidate> withParameter(const Candidate &base, const std::string &parameter, double value);

/// Shortest text that reads back as the same number: 0.35, 8.
std::string shortestText(double value);

} // namespace planish
