// What a plan costs: prefill and decode apart, per edge, per layer and in total; storage, conversion, on-chip fit, what tensor
// parallelism leaves open, and with a machine profile a time that is labelled an estimate. Formulas: plan.md "Ledger".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/plan/machine_profile.h"
#include "core/plan/plan.h"

namespace planish {

/// Microseconds; overlap is never assumed, so the parts add up. derived from the profile, nothing was run.
struct TimeEstimate {
    double transform = 0, quantize = 0, gemm = 0, epilogue = 0, traffic = 0, communication = 0;
    double total() const { return transform + quantize + gemm + epilogue + traffic + communication; }
    TimeEstimate &operator+=(const TimeEstimate &other);
};

/// One phase of one edge, layer or plan: `tokens` at once.
struct PhaseCost {
    std::int64_t tokens = 0;
    double flops = 0, bytes = 0, launches = 0; ///< of what runs online, for all tokens
    std::optional<TimeEstimate> time;
    PhaseCost &operator+=(const PhaseCost &other);
};

/// Does an online operator fit on chip: its factors and a tile of one token in fp32. If not, two passes are charged.
struct OnChip {
    std::string op;
    double factorBytes = 0, tileBytes = 0;
    bool fits = true;
};

/// One way to run a full-width factor on `t` devices (plan.md "TP choices").
struct ShardChoice {
    std::string choice; ///< rank_local | communication | resharding | shard_aligned | refuse
    std::string sentence;
    bool possible = true;
    double bytesPerToken = 0; ///< sent between devices per token
};

struct EdgeLedger {
    EdgeId edge;
    std::int64_t layer = -1;
    PhaseCost prefill, decode;
    double metadataBytes = 0, weightBits = 16, weightBytes = 0;
    std::vector<OnChip> online;
    std::vector<ShardChoice> shards; ///< only where a factor crosses the shards of a row-parallel weight
    std::vector<std::string> notes;
};

struct LayerLedger {
    std::int64_t layer = -1;
    PhaseCost prefill, decode;
    double metadataBytes = 0, weightBytes = 0;
};

struct PlanLedger {
    std::vector<EdgeLedger> edges;   ///< plan order
    std::vector<LayerLedger> layers; ///< by layer
    PhaseCost prefill, decode;
    double metadataBytes = 0, weightBytes = 0;
    std::optional<double> weightBits;                        ///< mean over elements; none without weights
    double onlineFlopsPerToken = 0, onlineBytesPerToken = 0; ///< at prefill
    std::int64_t tensorsRewritten = 0, onlineOperators = 0, files = 2;
    std::string machine; ///< name of the profile, empty = no times
};

/// Pure; `machine` may be null. Uses plan.ledgerOptions (tokens, batch, KiB) and plan.tensorParallel.
PlanLedger ledgerOf(const Plan &plan, const MachineProfile *machine = nullptr);

/// The `ledger` object of a manifest; times only with a profile.
nlohmann::ordered_json ledgerJson(const PlanLedger &ledger);

/// Choices for the operators of an assignment that stay online on `devices` devices; empty when nothing crosses a shard.
std::vector<ShardChoice> shardChoices(const Assignment &assignment, int devices);

} // namespace planish
