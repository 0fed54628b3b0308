// The command line as one value: every flag of cli.md, filled by the parser, read by the verbs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/run/requests.h"

namespace planish::cli {

/// What was typed. Verbs read the fields their flags fill; the others keep their defaults.
struct Arguments {
    std::string verb;
    std::vector<std::string> typed; ///< the whole line, program name first
    std::vector<std::string> files;
    std::string weights, act, weight, kv, method, param, values, csv, state, candidates, preset, out, checkpoint, transformed;
    std::string target, action, tensor, spec, calibrationRows, quantizeRows, saveStats, join, plan, dump, modelOut, to;
    std::vector<std::string> edges, sets, rules, pins, exclude, comparisons;
    std::optional<double> from, until, step;
    std::optional<double> maxOnlineFlops, maxWeightBits;
    double tau = 6.0;
    std::string part = "all", arrays, effort = "full", rankBy = "auto", choose = "lowest", store = "stored", interventionPart = "held_out";
    bool names = false, sensitivity = false, attention = false, preview = false, breakdown = false, refit = false, partial = false;
    bool ablate = false, streams = false, allowOnline = false, allowFunctionChange = false, acceptJoint = false, storeWeights = false;
    bool tied = false;
    int tensorParallel = 1, control = 50;
    std::int64_t tokens = 512, channels = 512, layers = 2;
    std::string synthFamily = "llama";

    // rows
    double calibration = 0.5;
    std::uint64_t splitSeed = 0;
    std::string rows = "2048", phase = "both", skipPositions, skipIds, fitRows, scoreRows;
    bool noBos = false;

    GlobalOptions global;
    std::string prefer;
    bool json = false, progress = false, quiet = false;
};

/// Parses argv. On --help or --version prints and gives exit code 0 as `Finished`; faults are Usage errors.
struct Finished {
    int code = 0;
};
Expected<std::variant<Arguments, Finished>> parseArguments(int argc, const char *const *argv);

/// The `[rows]` flags as a request; contradictions are Usage errors.
Expected<RowRequest> rowRequest(const Arguments &arguments);
/// "0:256,300:310" -> ranges.
Expected<std::vector<RowRange>> parseRanges(const std::string &text, const std::string &flag);

} // namespace planish::cli
