// Where each factor of a Rewrite goes: the longest prefix the producer absorbs is fused, the rest stays online, refusals name a
// rule. One pure function, no I/O. Rules: plan.md "When a plan may not be exported", diagonal.md 0.5, rotation.md 8 and 9.
#pragma once

#include <string>
#include <vector>

#include "core/graph/edge.h"
#include "core/names/family.h"
#include "core/transform/rewrite.h"

namespace planish {

struct TargetCapabilities;

// What the result says:
// - `fused` + `fusedInto`: the tensors that change. Consumer columns (and biases, for a shift) change whether the activation side
// is
//   fused or online.
// - `online`, `shiftStaysOnline`, `onlineReaders`: what must run. legal() with something online means "legal only with
// --allow-online"; the plan room
//   decides that.
// - A refusal of severity Note says why something stays online; Error says that no online operator can help either (a factor of
// 0, a
//   consumer without weights, a change in front of RoPE, a residual stream rewritten in part, heads that do not divide).
// - An edge read by someone the rewrite does not cover (residual shortcut, router, a linear left out) keeps everything online: an
//   operator in front of the covered consumers leaves the other reader alone.
// - PlacementContext::foldClaimed turns those Notes into Errors: a manifest that claims a fold is judged by it.

/// How one stored tensor changes. Rows/columns are multiplied; Bias also loses a shift.
struct FusedFactor {
    enum class How {
        NormGain,        ///< gain' = (offset + gain)/s - offset, bias' = (bias - c)/s
        ProducerRows,    ///< rows of a linear divided by s (bias (b - c)/s)
        ConsumerColumns, ///< W' = W P^-T
        ConsumerBias,    ///< b' = b + W c
        PartnerRows      ///< the other side of a score edge: rows take P^-T (k * s for q / s)
    } how = How::ConsumerColumns;
    TensorName tensor;
    RowRangeOf rows;
    bool createsBias = false;
};

struct Refusal {
    std::string rule;     ///< stable name
    std::string other;    ///< the other party
    std::string sentence; ///< "layers.3.mlp_in: the router … also reads this edge (router_not_covered)"
    enum class Severity { Error, Warning, Note } severity = Severity::Error;
    bool operator==(const Refusal &) const = default;
};

struct Placement {
    std::vector<FusedFactor> fused;
    std::size_t fusedOperators = 0; ///< length of the fused prefix of rewrite.input.operators
    bool shiftFused = false;
    std::vector<Operator> online;                  ///< in order
    std::vector<std::string> fusedInto;            ///< dump names, producer first, row ranges as name[a:b]
    std::vector<Refusal> refusals;                 ///< reasons why something could not be fused, or the whole is illegal
    bool legal() const;                            ///< no refusal of severity Error
    bool shiftStaysOnline = false;                 ///< the shift runs as an operator, in front of `online`
    std::vector<OtherReaderRewrite> onlineReaders; ///< shortcuts multiplied at run time
    bool needsOnline() const { return !online.empty() || shiftStaysOnline || !onlineReaders.empty(); }
};

struct PlacementContext {
    const Family *family = nullptr; ///< may be null: names unknown
    const ModelInfo *model = nullptr;
    int tensorParallel = 1;
    std::string target;       ///< engine key of resources/targets, empty = none
    bool foldClaimed = false; ///< the rewrite is said to be fused (check of a manifest): what keeps it online is an Error
    const TargetCapabilities *capabilities = nullptr; ///< of `target`, null = not asked
};

Placement place(const Edge &edge, const Rewrite &rewrite, const PlacementContext &context);

} // namespace planish
