// The command lines that print the numbers of a report again. Pure text; quoting is for a POSIX shell.
#pragma once

#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace planish {

/// Quoted only where a shell would read it otherwise.
std::string shellWord(const std::string &text);
/// "FILE --weights W".
std::string fileFlags(const std::string &file, const std::string &weights);
/// The `[rows]` flags of a request, defaults left out, with a leading blank.
std::string rowFlagsOf(const RowRequest &rows);
/// `evaluate` of an assignment: its methods with every parameter that is not a default.
std::string evaluateLine(const Assignment &assignment, const std::string &file, const std::string &weights,
                         const RowRequest &rows);
/// The words of a command line, quoted and joined.
std::string commandLine(const std::vector<std::string> &words);

} // namespace planish
