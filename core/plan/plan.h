// A plan as a value: source, split, one assignment per edge or stream with its Rewrite, placement and measured errors. plan.md.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/evaluate/compare.h"
#include "core/graph/placement.h"

namespace planish {

struct SourceFile {
    std::string file, sha256;
};
struct PlanSource {
    std::vector<SourceFile> checkpoint; ///< one or more shards; empty when the dump's weights are the source
    std::string configSha256;
    SourceFile dump;
    std::string model, modelRevision, family;
    ModelInfo modelInfo;
};

struct PlanCalibration {
    std::vector<std::string> requests, heldOut, sealed; ///< unit ids of the parts
    std::int64_t rows = 0, heldOutRows = 0, sealedRows = 0, validationRows = 0, availableRows = 0;
    std::uint64_t splitSeed = 0;
    bool masked = false, bosExcluded = false;
    std::string unit;
    std::vector<std::string> phases;
    std::vector<std::int32_t> skippedPositions;
    std::map<std::string, std::string> rowsSha256;
    RowRequest request;
};

/// One edge (or stream) of the plan.
struct Assignment {
    EdgeId edge;
    StreamId stream;                       ///< set for stream assignments, edge empty
    Candidate candidate;
    std::vector<FittedMember> chain;
    std::shared_ptr<const Rewrite> rewrite;
    Placement placement;
    std::string producerName, producerKind;
    bool producerOffset = false;
    std::vector<std::string> consumers;
    std::string ties = "none";
    std::optional<Equivalence> equivalence;
    std::optional<double> functionChange;
    Conditioning conditioning;
    std::optional<OutputBlock> alone, joint, identity;
    std::optional<Uncertainty> uncertainty;
    Ledger ledger;
    std::int64_t deadChannels = 0;
    std::int64_t weightElements = 0;       ///< sum over consumers of N K
    std::int64_t channels = 0;             ///< K, 0 = not stated
    std::vector<std::string> notes;
    std::string status = "ok";             ///< ok | refused (kept as none)
    std::string reason;                    ///< the sentence of a refused edge
};

struct ChoiceEntry {
    std::string name, status, reason;
    std::optional<double> relativeFrobenius, low, high; ///< with its 95 % spread
    std::optional<double> onlineFlops, weightBits;
    int tie = -1;
};
struct ChoiceLog {
    EdgeId edge;
    std::string rule;
    std::vector<ChoiceEntry> candidates;
};

struct Plan {
    std::string toolVersion, backend, cpu;
    PlanSource source;
    std::string basisIn;                   ///< "sha256:…"
    PlanCalibration calibration;
    std::vector<Assignment> assignments;
    std::vector<ChoiceLog> choices;
    LedgerOptions ledgerOptions;
    int tensorParallel = 1;
    std::string target;
    std::vector<std::string> notes;
    std::string command;                   ///< the line that made it, empty when made in the window
};

enum class Choose { Lowest, Knee, Within };

struct PlanOptions {
    EvaluateOptions evaluate;
    std::vector<Candidate> candidates;
    Choose choose = Choose::Lowest;
    std::optional<double> maxOnlineFlops, maxWeightBits;
    std::vector<std::pair<std::string, std::string>> pins; ///< edge -> candidate name
    std::vector<std::string> exclude;
    bool streams = false, allowOnline = false, allowFunctionChange = false, acceptJoint = false, storeWeights = false;
    RankBy rankBy = RankBy::Auto;
    std::string stateDir;
};

/// Steps 1 to 8 of plan.md "How plan decides". Nothing is written.
Expected<Plan> makePlan(const Opened &opened, const PlanOptions &options, std::shared_ptr<const Backend> backend,
                        std::stop_token stop, const ProgressSink &progress);

/// Writes side file, then YAML, each under a temporary name, flushed and renamed. Returns the files written.
Expected<std::vector<std::string>> writePlan(const Plan &plan, const std::string &yamlFile);
/// Reads and validates a manifest and its side file (plan.md "Reading a plan").
Expected<Plan> readPlan(const std::string &yamlFile);

/// SHA-256 over the tensors the plan rewrites, plan.md "Basis".
Expected<std::string> basisHash(const Checkpoint &checkpoint, const std::vector<std::string> &names);

struct ApplyResult {
    std::string out;
    std::int64_t tensorsRewritten = 0, tensorsCopied = 0;
    std::string basisIn, basisOut;
    double seconds = 0;
};
enum class StoreAs { Stored, F64 };
/// Streams a checkpoint to a new one of the same kind, folds in double, rounds once. Atomic; disk space is checked first.
Expected<ApplyResult> applyPlan(const std::string &planFile, const Plan &plan, const std::string &checkpointIn, const std::string &out,
                                StoreAs store, const FamilyList &families, std::stop_token stop, const ProgressSink &progress);

struct VerifyEdge {
    EdgeId edge;
    double storedRelativeFrobenius = 0, promised = 0, threshold = 0;
    std::optional<OutputBlock> sealed, identitySealed;
    bool passed = false;
    std::string reason; ///< names the tensor and the largest deviation
};
struct VerifyResult {
    bool passed = false;
    int opened = 0;     ///< how often sealed rows of the plan's dump were read, this run included
    RowCounts rows;
    std::vector<VerifyEdge> edges;
    std::vector<std::string> changedTensors; ///< not in the plan but different
};
Expected<VerifyResult> verifyPlan(const std::string &planFile, const Plan &plan, const std::string &dumpFile, const std::string &checkpointIn,
                                  const std::string &transformed, const FamilyList &families, std::shared_ptr<const Backend> backend,
                                  std::stop_token stop, const ProgressSink &progress);

struct CheckFinding {
    std::string edge, rule, other, sentence;
    Refusal::Severity severity = Refusal::Severity::Error;
};
struct CheckResult {
    bool legal = true;
    std::vector<CheckFinding> findings;
    std::map<std::string, std::string> hashes; ///< passed | failed | unchecked
};
Expected<CheckResult> checkPlan(const std::string &planFile, const Plan &plan, const std::string &checkpoint, int tensorParallel,
                                const std::string &target, const FamilyList &families);

} // namespace planish
