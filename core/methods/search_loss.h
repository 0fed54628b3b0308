// The loss of searches: ||E||_F of trial Rewrites on the search rows, with both quantizers of the specs, and the bookkeeping of
// "documented order, strict <, NaN rejected" (evaluation.md 1 "Selection").
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/methods/edge_product.h"

namespace planish {

enum class SearchPart { Fit, Validation };

/// What `search_rows` says; `automatic` is the method's own rule for auto.
SearchPart searchPart(const Params &params, SearchPart automatic);

/// Holds X, W and Y of the search rows and reuses what a trial leaves unchanged. One thread at a time.
/// Fit: scored on all calibration rows, static ranges from them. Validation: scored on the inner validation rows, ranges from the
/// others.
class SearchLoss {
public:
    static Expected<SearchLoss> create(const FitInput &input, SearchPart part);

    /// ||E||_F; NaN when a scale of the trial cannot be represented. Errors: cancel and machine faults.
    Expected<double> operator()(const Rewrite &trial);
    /// The same with the specs replaced (awq searches with exact activations).
    Expected<double> underSpecs(const Rewrite &trial, const SpecPair &specs);
    /// All sums of one trial, for losses per row of W.
    Expected<ProductError> measure(const Rewrite &trial, const SpecPair &specs, TermDetail detail = TermDetail::ErrorOnly);

    SearchPart part() const { return m_part; }
    const ProductRows &rows() const { return m_rows; }
    const SpecPair &specs() const { return m_specs; }
    /// The calibration rows a parameter is fitted on: all for Fit, without the validation part otherwise.
    const CalibrationRows &fitRows() const { return m_fitRows; }

private:
    SearchLoss() = default;
    ProductRows m_rows;
    SpecPair m_specs, m_cachedSpecs;
    CalibrationRows m_fitRows;
    SearchPart m_part = SearchPart::Fit;
    std::stop_token m_stop;
    ProductCache m_cache;
};

/// The best of trials offered in documented order.
class BestTrial {
public:
    /// True when this trial is the new best.
    bool offer(std::string label, double parameter, double loss);
    bool any() const { return m_best != kNone; }
    std::size_t index() const { return m_best; }
    double loss() const { return m_loss; }
    /// Log with the chosen entry marked, and the number of rejected trials into `fitted.rejected` when there were any.
    void store(Rewrite &rewrite) const;

private:
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    std::vector<SearchEntry> m_log;
    std::size_t m_best = kNone;
    double m_loss = std::numeric_limits<double>::infinity();
    std::int64_t m_rejected = 0;
};

/// Best of seed, seed+1, … (`seeds`) by output error; sets fitted.seed. `build` makes the Rewrite of one seed.
Expected<Rewrite> bestSeed(const FitInput &input, const std::function<Expected<Rewrite>(std::uint64_t seed)> &build);

/// Reports progress of a search when somebody listens; false when a stop was requested.
bool reportTrial(const FitInput &input, const std::string &stage, std::size_t done, std::size_t total);

} // namespace planish
