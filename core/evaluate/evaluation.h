// The result of evaluating one candidate on one edge: every field of evaluation.md 6, and what decides it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/placement.h"
#include "core/measure/error_sums.h"
#include "core/methods/method_table.h"
#include "core/rows/split.h"
#include "core/transform/equivalence.h"

namespace planish {

enum class EvaluationStatus { Ok, Refused, Failed };

struct WorstToken {
    std::int64_t row = -1;
    std::int64_t request = 0, position = 0;
    std::string text;
    double value = 0; ///< relative, or the error norm for the absolute twin
};
struct WorstChannel {
    std::string consumer;
    std::int64_t channel = -1, stacked = -1;
    double value = 0;
};
struct RowFigures {
    double rms = 0, median = 0, p95 = 0, max = 0;
};
struct ConsumerError {
    std::string name;
    double relativeFrobenius = 0;
};

struct OutputBlock {
    double relativeFrobenius = 0, sqnrDb = 0, mse = 0, cosine = 0, maxAbs = 0;
    RowFigures rows;
    double topRowsShare = 0;
    bool tokenDominated = false;
    WorstToken worstToken, worstTokenAbsolute;
    WorstChannel worstChannel, worstChannelAbsolute;
    std::vector<ConsumerError> perConsumer;
};

struct Uncertainty {
    std::string unit;
    std::int64_t units = 0;
    double standardError = 0, low = 0, high = 0;
    std::vector<double> leaveOneOut; ///< r_(-j), for paired comparisons
};

struct TensorError {
    double relativeFrobenius = 0, zeroedFraction = 0, zeroedEnergy = 0, saturatedFraction = 0;
};
struct ErrorTerms {
    double activationOnly = 0, weightOnly = 0, cross = 0, interaction = 0;
};
struct GeometryAfter {
    double maxAbs = 0, maxToMedian = 0, meanIncoherence = 0;
    bool zeroMedian = false;
    std::vector<double> channelMaxAbs; ///< profile after the transform, K'
};
struct Ledger {
    double onlineFlopsPerToken = 0, onlineBytesPerToken = 0, launches = 0, metadataBytes = 0, weightBits = 16;
    double exceptionColumns = 0; ///< kept in high precision, mean over requests of a dynamic set
    std::vector<std::string> fusedInto, online;
};
struct RowCounts {
    std::int64_t calibration = 0, validation = 0, heldOut = 0, sealed = 0, available = 0;
    std::optional<std::int64_t> fit, score;
};
struct ExceptionReport {
    std::vector<std::int64_t> columns;                                  ///< static
    std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>> perRequest; ///< dynamic
    double share = 0; ///< of K
};
struct Interval {
    double low = 0, high = 0, confidence = 0.95;
    std::int64_t rows = 0, outputs = 0;
};
struct FittedMember {
    std::string method;
    Fields params, fitted;
};

struct Evaluation {
    std::string file;
    EdgeId edge;
    std::vector<std::string> consumers;
    EvaluationStatus status = EvaluationStatus::Ok;
    std::string reason, rule; ///< of refused or failed
    std::string candidate;
    std::vector<FittedMember> chain;
    std::uint64_t seed = 0;
    QuantSpec act, weight;
    std::optional<QuantSpec> kv;
    std::string backend;
    std::string splitUnit;
    std::uint64_t splitSeed = 0;
    bool inSample = false, partial = false, analysisOnly = false;
    std::vector<std::string> consumersMissing;
    RowCounts rows;
    bool preview = false;
    std::optional<Equivalence> equivalence;
    std::optional<double> functionChange;
    std::optional<OutputBlock> output;
    std::optional<Uncertainty> uncertainty;
    std::optional<Interval> interval;
    std::optional<double> gain;
    std::optional<TensorError> activation, weightError;
    std::optional<ErrorTerms> terms;
    std::optional<Conditioning> conditioning;
    std::optional<GeometryAfter> geometryAfter;
    std::optional<ExceptionReport> exceptions;
    std::map<std::string, std::int64_t> clamps;
    Ledger ledger;
    std::vector<SearchEntry> searchLog;
    std::optional<TrainingRecord> training;
    std::vector<std::string> notes;
    double seconds = 0;
    std::string selectedOn;

    // Kept for plans, comparisons and pictures, not printed as they stand.
    std::shared_ptr<const Rewrite> rewrite;
    std::shared_ptr<const Placement> placement;
    std::shared_ptr<const ErrorSums> sums;
};

} // namespace planish
