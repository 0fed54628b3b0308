// Why something cannot be folded: one question per function, each answered with a rule of plan.md "When a plan may not be
// exported". Tables: diagonal.md 0.5, rotation.md 8 and 9; measured cases: legality.json in the tests. Pure.
#pragma once

#include <optional>
#include <vector>

#include "core/graph/placement.h"

namespace planish {

/// "EDGE: text (rule)".
Refusal refusalOf(const Edge &edge, std::string rule, std::string other, const std::string &text,
                  Refusal::Severity severity = Refusal::Severity::Note);

/// Faults no placement can mend: a factor of 0 or not finite, a consumer without weights, an edge without consumers, a change in
/// front of RoPE or q_norm/k_norm, heads mixed inside a score.
std::vector<Refusal> faultsOf(const Edge &edge, const Rewrite &rewrite, const PlacementContext &context);

/// Readers that are neither consumers nor covered by the rewrite's otherReaders.
std::vector<Refusal> readersLeft(const Edge &edge, const Rewrite &rewrite);

/// The dump's or plan's producer is not the one the family names for this site.
std::optional<Refusal> wrongProducer(const Edge &edge, const PlacementContext &context);

/// Why the producer cannot emit T - c; nullopt = it can.
std::optional<Refusal> shiftStays(const Edge &edge, const std::vector<double> &shift, const PlacementContext &context);

/// Why the producer cannot absorb `op`; nullopt = it can.
std::optional<Refusal> operatorStays(const Edge &edge, const Operator &op, const PlacementContext &context);

} // namespace planish
