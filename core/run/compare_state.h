// `compare --state DIR`: one JSON per (edge, candidate) under a hash of everything that decides it, so that an interrupted run
// resumes and another request never reads it.
#pragma once

#include <optional>
#include <string>

#include "core/run/engine.h"

namespace planish {

class CompareState {
public:
    /// An empty folder name keeps nothing. The folder is made when it does not exist.
    static Expected<CompareState> open(const std::string &folder, const Opened &opened, const EvaluateOptions &options,
                                       const std::string &backend);

    /// The finished evaluation, or nothing; an unreadable entry counts as nothing.
    std::optional<Evaluation> load(const EdgeId &edge, const Candidate &candidate) const;
    Expected<void> store(const EdgeId &edge, const Candidate &candidate, const Evaluation &evaluation) const;

private:
    std::string pathOf(const EdgeId &edge, const Candidate &candidate) const;

    std::string m_folder, m_request;
};

} // namespace planish
