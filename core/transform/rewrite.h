// What a method decides for one edge (or stream): operators on both sides and everything that is not an operator.
// Order (design.md): W~ = replaced or original; W' = W~ P^-T (and U); W' -= L1 L2; exceptions and clips act on X', W'; quantize.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/quant/quant_spec.h"
#include "core/transform/operator.h"

namespace planish {

enum class Precision { Stored, Fp16, Bf16, Quantized };
enum class Comparator { GreaterEqual, Greater };
enum class StepIgnores { Columns, Elements };

struct StaticExceptions {
    std::vector<std::int64_t> columns; ///< of X' after all operators
    bool operator==(const StaticExceptions &) const = default;
};
enum class ExceptionUnit { Request, All };
struct DynamicExceptions {
    double threshold = 6.0;
    Comparator comparator = Comparator::GreaterEqual;
    ExceptionUnit unit = ExceptionUnit::Request;
    bool operator==(const DynamicExceptions &) const = default;
};
struct Exceptions {
    std::variant<StaticExceptions, DynamicExceptions> rule;
    Precision activation = Precision::Stored;
    Precision weight = Precision::Stored; ///< Quantized: weights as quantized over full K (bitsandbytes)
    StepIgnores stepIgnores = StepIgnores::Columns;
    double stepThreshold = 6.0; ///< static columns with StepIgnores::Elements: row steps leave out elements of at least this size
    bool operator==(const Exceptions &) const = default;
};

enum class Target { Activation, Weight };
/// A fitted clip. Absolute: one bound or one range per share; multiplier: factor of the range per share (or one for all).
struct Clip {
    Target target = Target::Activation;
    enum class Kind { AbsoluteBound, AbsoluteRange, Multiplier } kind = Kind::Multiplier;
    std::vector<double> lo, hi;     ///< per share of the consumer; AbsoluteBound uses hi only; Multiplier: factors of lo and hi
    std::size_t consumer = 0;       ///< index of the consumer for weights
    bool clampsValues = false;      ///< AWQ: W' clamped to +-bound before the spec is applied
    bool operator==(const Clip &) const = default;
};

/// One pair L1 [N, r], L2 [r, K] per consumer (or of the stack), read from the unquantized X'.
struct LowRank {
    std::size_t rank = 0;
    bool stacked = false;
    Precision precision = Precision::Fp16;
    std::vector<MatrixD> left, right;
    bool operator==(const LowRank &) const = default;
};

/// Third fold place: a reader that is no consumer (shortcut) multiplied by `multiply`, or a shift carried by a bias.
struct OtherReaderRewrite {
    std::string reader;
    std::vector<double> multiply;
    std::vector<double> addToBias;
    std::string biasOf; ///< linear that takes the shift
    bool operator==(const OtherReaderRewrite &) const = default;
};

/// One value of `params` or `fitted`.
using FieldValue = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<double>, std::vector<std::string>>;
using Fields = std::map<std::string, FieldValue>;

struct SearchEntry {
    std::string label;   ///< "alpha=0.35"
    double parameter = 0;
    double loss = 0;     ///< NaN: rejected
    bool chosen = false;
};

struct TrainingRecord {
    std::string optimizer, schedule, objective, init;
    std::vector<double> betas;
    double lr = 0;
    std::int64_t steps = 0, batchRows = 0, bestStep = 0;
    bool ste = false, detached = false;
    double finalObjective = 0, startObjective = 0, seconds = 0;
    std::vector<double> curve; ///< validation objective at each check
};

/// The specs a Rewrite was fitted for; evaluating it under others is an error unless refit.
struct SpecPair {
    QuantSpec act, weight;
    std::optional<QuantSpec> kv;
    bool operator==(const SpecPair &) const = default;
};

struct Rewrite {
    Transform input;
    std::optional<Transform> output;                 ///< U on the outputs: W' = U^T W, b' = b U
    std::vector<std::optional<MatrixD>> replaced;    ///< per consumer: W~ instead of W (magr), empty vector = none
    std::optional<LowRank> lowRank;
    std::optional<Exceptions> exceptions;
    std::vector<Clip> clips;
    std::vector<OtherReaderRewrite> otherReaders;
    std::optional<SpecPair> specs;                   ///< set when the fit depends on them
    Fields fitted;
    std::vector<SearchEntry> log;
    std::optional<TrainingRecord> training;
    std::map<std::string, std::int64_t> clamps;      ///< name -> count
    std::vector<std::string> notes;
    bool changesFunction = false;

    /// This first, then `next` on the coordinates it left. Fails when this carries slots that must be last.
    Expected<Rewrite> then(const Rewrite &next) const;
};

} // namespace planish
