// The loop every learned method runs: steps, progress, cancel that keeps the best state, a check on the inner validation rows every few
// steps, patience (parameters.md "Common parameters").
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <string>

#include "core/methods/dense.h"
#include "core/methods/search_loss.h"

namespace planish::learned {

/// Rows of X and Y = X W^T that one step sees.
struct LearnedBatch {
    Dense x, y;
};

/// The rows `part` lets a method learn on, cut into equal batches of at most `batch_rows` (0: one batch). `w` is stacked, [sum N, K].
std::vector<LearnedBatch> learnedBatches(const FitInput &input, SearchPart part, const Dense &w);

/// batch_rows, validation_every and patience.
std::vector<ParamRow> loopParams();
/// `rows` followed by loopParams().
std::vector<ParamRow> withLoopParams(std::vector<ParamRow> rows);

/// Falls by a cosine from 1 at step 0 to `last` at the end.
inline double cosineDecay(std::int64_t step, std::int64_t steps, double last = 0.0)
{
    return last + (1 - last) * 0.5 * (1 + std::cos(std::numbers::pi * double(step) / double(steps)));
}

/// Where a run stands among several of equal length, for the progress bar.
struct LoopPlace {
    std::string stage;
    std::size_t run = 0, runs = 1;
};

template <class State> struct LearnedRun {
    /// Step `step` of `steps`, from 0; false when nothing moves any more.
    std::function<Expected<bool>(State &, std::int64_t step)> advance;
    /// What is minimised, on rows the steps do not see. NaN: rejected.
    std::function<Expected<double>(const State &)> check;
};

/// Runs `steps` steps from `state` and returns the state with the lowest check, the start included. Adds to the record: objectives, curve,
/// best step, seconds. A stop request ends the run and keeps the best so far.
template <class State>
Expected<State> learn(const FitInput &input, const LoopPlace &place, State state, std::int64_t steps, const LearnedRun<State> &run, TrainingRecord &record)
{
    const auto begun = std::chrono::steady_clock::now();
    const std::int64_t every = input.params.integer("validation_every"), patience = input.params.integer("patience");
    auto lowest = run.check(state);
    if (!lowest)
        return tl::make_unexpected(lowest.error());
    record.startObjective += *lowest;
    State best = state;
    std::int64_t bestStep = 0;
    for (std::int64_t step = 1, since = 0; step <= steps && since < patience; ++step) {
        if (input.progress) {
            const double whole = double(place.runs) * double(steps), done = double(place.run) * double(steps) + double(step - 1);
            input.progress({.stage = place.stage, .done = done, .total = whole, .unit = "steps", .objective = *lowest, .hasObjective = true});
        }
        if (input.stop.stop_requested())
            break;
        auto moved = run.advance(state, step - 1);
        if (!moved && input.stop.stop_requested())
            break;
        if (!moved)
            return tl::make_unexpected(moved.error());
        if (!*moved)
            break;
        if (step % every != 0 && step != steps)
            continue;
        auto now = run.check(state);
        if (!now && input.stop.stop_requested())
            break;
        if (!now)
            return tl::make_unexpected(now.error());
        record.curve.push_back(*now);
        since = *now < *lowest ? 0 : since + 1;
        if (*now < *lowest) {
            lowest = now;
            best = state;
            bestStep = step;
        }
    }
    record.finalObjective += *lowest;
    record.bestStep = std::max(record.bestStep, bestStep);
    record.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    return best;
}

} // namespace planish::learned
