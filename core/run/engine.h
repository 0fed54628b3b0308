// The engine: opens data, owns the backend, runs requests. The window's Session and the command line call exactly these functions.
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "core/evaluate/sensitivity.h"
#include "core/run/requests.h"

namespace planish {

struct EdgeAnalysis {
    EdgeId edge;
    std::int64_t layer = -1;
    std::string site, dtype;
    std::shared_ptr<const Statistics> statistics;
    Concentration concentration;
    std::vector<double> weightMax, weightEnergy; ///< per channel over all consumers; empty without weights
    std::vector<Finding> findings;
    std::vector<std::pair<std::string, std::shared_ptr<const Statistics>>> phases;
    std::vector<std::string> notes;
    std::shared_ptr<const Sensitivity> sensitivity; ///< null unless asked for
};
struct Analysis {
    std::string file;
    std::vector<EdgeAnalysis> edges;
    std::vector<SystematicDimension> systematic;
    std::vector<LayerDamage> layers; ///< with sensitivity, largest damage first
    std::vector<std::string> notes;
    std::vector<Error> failures; ///< edges that could not be read; the others are still there
};

struct Sweep {
    std::string parameter;
    std::vector<double> values;
    std::vector<Evaluation> evaluations;
    std::size_t best = 0;
    std::vector<std::size_t> tie;
};

struct QuantizationResult {
    std::string file, tensor, spec;
    std::int64_t rowBegin = 0, rowEnd = 0, columns = 0;
    double relativeFrobenius = 0, squaredError = 0, zeroedFraction = 0, saturatedFraction = 0;
    double sumCodes = 0, sumAbsCodes = 0, scaleChecksum = 0, sumZeroPoints = 0, tensorScale = 0;
    std::int64_t scaleCount = 0, nearTies = 0;
};

/// Runs requests on opened data. Thread-safe for concurrent calls on different lanes. Every long call takes a stop_token.
class Engine {
public:
    explicit Engine(GlobalOptions global = {});
    static Expected<std::shared_ptr<Engine>> create(const GlobalOptions &global); ///< checks the CPU and the backend
    const GlobalOptions &global() const { return m_global; }
    const std::shared_ptr<const Backend> &backend() const { return m_backend; }

    Expected<std::shared_ptr<const Opened>> open(const OpenRequest &request, std::stop_token stop, const ProgressSink &progress) const;
    Expected<Analysis> analyze(const Opened &opened, const AnalyzeRequest &request, std::stop_token stop, const ProgressSink &progress) const;
    Expected<std::vector<Evaluation>> evaluate(const Opened &opened, const EvaluateRequest &request, std::stop_token stop,
                                               const ProgressSink &progress) const;
    Expected<Sweep> sweep(const Opened &opened, const SweepRequest &request, std::stop_token stop, const ProgressSink &progress) const;
    Expected<Comparison> compare(const Opened &opened, const CompareRequest &request, std::stop_token stop, const ProgressSink &progress) const;
    Expected<QuantizationResult> quantize(const std::string &file, const QuantizeVerbRequest &request, std::stop_token stop) const;
    Expected<Plan> plan(const Opened &opened, PlanOptions options, std::stop_token stop, const ProgressSink &progress) const;

    /// Edge data is loaded once and kept (most recent few edges); the window drags sliders on it.
    Expected<std::shared_ptr<const EdgeData>> edgeData(const Opened &opened, const EdgeId &edge, const EvaluateOptions &options,
                                                       std::stop_token stop) const;

private:
    struct State;
    GlobalOptions m_global;
    std::shared_ptr<const Backend> m_backend;
    std::shared_ptr<State> m_state;
};

} // namespace planish
