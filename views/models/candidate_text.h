// Candidates as text: the label on screen, the key that tells two requests apart, and the command line that prints the same
// number.
#pragma once

#include <QString>

#include "core/run/requests.h"

namespace planish {

/// Chain text followed by the `--set` items as typed: "smoothquant alpha=0.5"; identity is "none".
std::string candidateLabel(const Candidate &candidate);
/// Everything that decides a result: chain, parameters, seed, specs. Two candidates with one key give one evaluation.
QString candidateKey(const Candidate &candidate);
/// Key of a whole request: file part excluded (stores are emptied when a file is opened).
QString requestKey(const EvaluateRequest &request);

/// What is typed for one parameter of member `index`, or empty when the default holds.
std::string valueOf(const ChainMember &member, const std::string &parameter);
void setValue(ChainMember &member, const std::string &parameter, const std::string &value);

/// Command lines that reproduce what is on screen. Paths are quoted for a POSIX shell.
QString analyzeCommand(const OpenRequest &opened, const std::string &edge);
QString evaluateCommand(const OpenRequest &opened, const EvaluateRequest &request);
QString sweepCommand(const OpenRequest &opened, const SweepRequest &request);
QString shellQuoted(const std::string &text);

} // namespace planish
