// Output of the command line: JSON as it is, or the same numbers as text; errors and progress on stderr.
#pragma once

#include <nlohmann/json.hpp>

#include "app/cli/args.h"

namespace planish::cli {

/// Prints the object: with --json exactly it, without it the same numbers as indented text and tables.
void print(const Arguments &arguments, const nlohmann::ordered_json &object);
/// `error: SUBJECT: what is wrong; what was expected` on stderr; gives the exit code of cli.md.
int printError(const Error &error);
/// Progress lines on stderr, only on a terminal or with --progress, at most 5 a second.
ProgressSink progressPrinter(const Arguments &arguments);

} // namespace planish::cli
