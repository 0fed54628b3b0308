// Every request the window and the command line can make, as plain structs with defaults. One run function each (run.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/evaluate/compare.h"
#include "core/geometry/findings.h"
#include "core/names/resolver.h"
#include "core/plan/plan.h"

namespace planish {

/// Global flags of cli.md.
struct GlobalOptions {
    std::string backend = "cpu";
    int threads = 0;
    std::uint64_t seed = 0;
    std::string family, familiesDir, config, layout;
    Prefer prefer = Prefer::None;
    OpenOptions open;
    bool noCache = false;
    LedgerOptions ledger;
    std::string machineProfile;
};

struct OpenRequest {
    std::string file, weights;
    GlobalOptions global;
};

struct InfoRequest {
    bool names = false;
};

enum class ArrayDetail { Auto, All, Channel, None };

struct AnalyzeRequest {
    std::vector<std::string> edges; ///< globs, empty = all
    double tau = 6.0;
    Part part = Part::All;
    std::vector<std::string> rules;
    ArrayDetail arrays = ArrayDetail::Auto;
    RowRequest rows;
    bool sensitivity = false, attention = false;
    std::optional<QuantSpec> act, weight;
    std::string join; ///< CSV of external scores beside the sensitivity, empty = none
    std::string saveStats;
    bool findings = true;
};

struct EvaluateRequest {
    std::vector<std::string> edges;
    Candidate candidate;
    EvaluateOptions options;
};

struct SweepRequest {
    EvaluateRequest base;
    std::string parameter;
    std::vector<double> values;
};

struct CompareRequest {
    std::vector<std::string> edges;
    std::vector<Candidate> candidates;
    EvaluateOptions options;
    RankBy rankBy = RankBy::Auto;
    std::string stateDir;
};

struct QuantizeVerbRequest {
    std::string tensor;
    std::optional<RowRange> rows, calibrationRows;
    QuantSpec spec;
    std::string specText;
};

struct SynthRequest {
    std::string out, modelOut, family = "llama";
    std::int64_t tokens = 512, channels = 512, layers = 2;
    bool tied = false;
    std::uint64_t seed = 0;
};

} // namespace planish
