// A method: one row (name, parameters, needs) and one function FitInput -> Rewrite. Public names: parameters.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/graph/edge.h"
#include "core/io/dump.h"
#include "core/io/progress.h"
#include "core/measure/statistics.h"
#include "core/rows/row_view.h"
#include "core/transform/rewrite.h"
#include "kernels/backend.h"

namespace planish {

enum class ParamType { Real, Integer, Enum, List };

/// One parameter as the form, the flags, Help and the manifest see it.
struct ParamRow {
    std::string name;
    ParamType type = ParamType::Real;
    double min = 0, max = 0, step = 0; ///< inclusive
    std::vector<std::string> values;   ///< enum values; the words a Real or Integer also accepts ("auto")
    std::string defaultValue;          ///< text form
    std::string help;
    std::vector<std::string> aliases;  ///< enum synonyms "teaching=symmetric"
};

/// Parsed parameters of one chain member, defaults filled in.
class Params {
public:
    Params() = default;
    explicit Params(Fields fields) : m_fields(std::move(fields)) {}
    const Fields &fields() const { return m_fields; }
    double real(const std::string &name) const;         ///< numbers; word values give NaN
    std::int64_t integer(const std::string &name) const;
    std::string word(const std::string &name) const;    ///< enum value, or "auto" for a number left open
    bool isWord(const std::string &name, std::string_view word) const;
    std::vector<std::string> list(const std::string &name) const;
    void set(const std::string &name, FieldValue value) { m_fields[name] = std::move(value); }

private:
    Fields m_fields;
};

struct ConsumerWeights {
    Consumer consumer;
    std::shared_ptr<const MatrixD> weight; ///< [N, K] in the current coordinates of the chain
    std::shared_ptr<const MatrixD> bias;   ///< [1, N] or null
};

/// What a fit may see: calibration rows only.
struct FitInput {
    const Edge *edge = nullptr;
    const ModelInfo *model = nullptr;
    CalibrationRows calibration;               ///< budgeted rows, current coordinates
    ValidationRows validation;                 ///< inner validation part of them
    CalibrationRows fitting;                   ///< calibration without validation
    std::shared_ptr<const Statistics> statistics; ///< over all calibration rows (unbudgeted), current coordinates
    std::vector<ConsumerWeights> consumers;
    std::shared_ptr<const NormParameters> norm; ///< of the producing norm, null if none or unknown
    Ties ties;                                 ///< already lifted when ties=none
    SpecPair specs;
    Params params;
    std::uint64_t seed = 0;
    std::string streamId;                      ///< id for random streams: the edge's, or stream:residual
    std::string purposeSuffix;                 ///< "#2" inside a chain
    std::vector<std::int64_t> systematic;      ///< systematic dimensions of the dump (llm_int8), filled on demand
    std::shared_ptr<const Backend> backend;
    std::stop_token stop;
    ProgressSink progress;
};

/// What a method must be given; a missing need is a refusal by name.
enum class Need { Activations, Weights, Specs, Norm, AllLayers };

struct MethodRow {
    std::string key;
    std::string label;
    std::string source;                        ///< paper and repository
    std::vector<Need> needs;
    bool changesFunction = false;
    bool mustBeFirst = false, mustBeLast = false;
    bool learned = false;
    std::vector<ParamRow> params;
    Expected<Rewrite> (*fit)(const FitInput &) = nullptr;
    /// Seconds a fit would take on this machine; null = quick.
    double (*estimateSeconds)(std::size_t channels, std::size_t outputs, std::size_t rows, const Params &) = nullptr;
};

} // namespace planish
