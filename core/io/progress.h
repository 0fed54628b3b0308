// Progress as a callback: stage, done of total in a unit. Called from worker threads, at most a few times a second.
#pragma once

#include <functional>
#include <string>

namespace planish {

struct ProgressReport {
    std::string stage;
    double done = 0.0, total = 0.0;
    std::string unit;
    double secondsLeft = -1.0; ///< < 0 unknown
    double objective = 0.0;    ///< of a learned fit, live
    bool hasObjective = false;
};
using ProgressSink = std::function<void(const ProgressReport &)>;

} // namespace planish
