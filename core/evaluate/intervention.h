// Interventions: something is done to channels, rows, one value or one weight, and the change of the output is measured beside
// random targets of the same size. evaluation.md 5.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/evaluate/evaluate.h"
#include "core/evaluate/evaluation.h"
#include "core/geometry/findings.h"

namespace planish {

enum class TargetKind { Channels, Tokens, Positions, Value, Weight, Finding };

/// A target as asked for. Tokens and the row of a value are rows of the file; the row of a weight is one of its matrix.
struct InterventionTarget {
    TargetKind kind = TargetKind::Channels;
    std::vector<std::int64_t> indices; ///< channels, tokens or positions
    std::string name;                  ///< of a weight, or the id of a finding
    std::int64_t row = -1, column = -1;
    std::string text; ///< as typed
};
/// `channels:3,247`, `tokens:0,128`, `positions:0`, `value:R,C`, `weight:NAME,J,K`, `finding:ID`.
Expected<InterventionTarget> parseTarget(const std::string &text);
/// The place a finding names. A finding without one (a head, a whole file) is a Usage error.
Expected<InterventionTarget> targetOf(const Finding &finding);

enum class ActionKind { Zero, Mean, Clip, Preserve, Isolate, WriteBack };
struct InterventionAction {
    ActionKind kind = ActionKind::Zero;
    double bound = 0; ///< of clip
    bool needsSpecs() const { return kind >= ActionKind::Preserve; }
};
/// `zero`, `mean`, `clip=V`, `preserve`, `isolate`, `write_back`.
Expected<InterventionAction> parseAction(const std::string &text);
std::string textOf(const InterventionAction &action);

struct InterventionOptions {
    Part part = Part::HeldOut;
    std::size_t control = 50; ///< random targets beside the one asked for
    std::uint64_t seed = 0;
    std::optional<SpecPair> specs;
};

/// Errors under the specs, each relative to ||Y||. `before` is the state without the action: everything quantized; nothing for
/// isolate; the weights alone for write_back.
struct QuantizedChange {
    double before = 0, after = 0;
    double everything = 0; ///< everything quantized, no action
    OutputBlock output;    ///< of `after`
};
struct ControlFigures {
    std::size_t sets = 0;
    std::optional<double> mean, standardDeviation, max;
    std::vector<double> values; ///< effect of each random target
};

struct Intervention {
    EdgeId edge;
    InterventionTarget target;
    InterventionAction action;
    Part part = Part::HeldOut;
    std::int64_t rows = 0, available = 0;
    std::optional<SpecPair> specs;
    std::optional<OutputBlock> fullPrecision; ///< change against Y; none where the action is about quantizers
    std::optional<QuantizedChange> quantized;
    double effect = 0; ///< what the control is compared with
    ControlFigures control;
    std::optional<double> ratio; ///< effect / control mean
    std::vector<std::string> notes;
};

/// Measures one intervention; a finding must have become a place (targetOf) before. Usage errors: a target the edge does not
/// have, an action that needs specs, write_back on something that is no weight.
Expected<Intervention> intervene(const EdgeData &data, const InterventionTarget &target, const InterventionAction &action,
                                 const InterventionOptions &options, std::stop_token stop, const ProgressSink &progress);

} // namespace planish
