#include "core/methods/search_loss.h"

#include <cmath>

#include "core/measure/error_sums.h"

namespace planish {

SearchPart searchPart(const Params &params, SearchPart automatic)
{
    if (params.isWord("search_rows", "fit"))
        return SearchPart::Fit;
    return params.isWord("search_rows", "validation") ? SearchPart::Validation : automatic;
}

Expected<SearchLoss> SearchLoss::create(const FitInput &input, SearchPart part)
{
    const bool fit = part == SearchPart::Fit;
    SearchLoss loss;
    loss.m_part = part;
    loss.m_specs = input.specs;
    loss.m_cachedSpecs = input.specs;
    loss.m_stop = input.stop;
    loss.m_fitRows = fit ? input.calibration : input.fitting;
    const auto x = fit ? input.calibration.sharedX() : input.validation.sharedX();
    const auto &requests = fit ? input.calibration.requests() : input.validation.requests();
    if (x->rows() == 0)
        return dataError(input.edge->id.value, "no rows to score a search on", "at least one row in the search part");
    auto rows = makeProductRows(input.backend, input.edge->id.value, x, requests, loss.m_fitRows.sharedX(), input.consumers);
    if (!rows)
        return tl::make_unexpected(rows.error());
    loss.m_rows = std::move(*rows);
    return loss;
}

Expected<double> SearchLoss::operator()(const Rewrite &trial)
{
    return underSpecs(trial, m_specs);
}

Expected<double> SearchLoss::underSpecs(const Rewrite &trial, const SpecPair &specs)
{
    auto product = measure(trial, specs);
    if (!product) {
        const ErrorCode code = product.error().code;
        if (code == ErrorCode::Cancelled || code == ErrorCode::Machine)
            return tl::make_unexpected(product.error());
        return std::numeric_limits<double>::quiet_NaN();
    }
    const double loss = std::sqrt(pairwiseSum(product->sums.rowError));
    return std::isfinite(loss) ? loss : std::numeric_limits<double>::quiet_NaN();
}

Expected<ProductError> SearchLoss::measure(const Rewrite &trial, const SpecPair &specs, TermDetail detail)
{
    if (!(specs == m_cachedSpecs)) {
        m_cache.hasWeights = m_cache.hasActivation = false;
        m_cachedSpecs = specs;
    }
    return measureProduct(m_rows, trial, specs, detail, m_stop, &m_cache);
}

bool BestTrial::offer(std::string label, double parameter, double loss)
{
    m_log.push_back({std::move(label), parameter, loss, false});
    if (std::isnan(loss)) {
        ++m_rejected;
        return false;
    }
    if (!(loss < m_loss))
        return false;
    m_loss = loss;
    m_best = m_log.size() - 1;
    return true;
}

void BestTrial::store(Rewrite &rewrite) const
{
    rewrite.log.insert(rewrite.log.end(), m_log.begin(), m_log.end());
    if (any())
        rewrite.log[rewrite.log.size() - m_log.size() + m_best].chosen = true;
    if (m_rejected > 0)
        rewrite.fitted["rejected"] = m_rejected;
}

Expected<Rewrite> bestSeed(const FitInput &input, const std::function<Expected<Rewrite>(std::uint64_t)> &build)
{
    const auto seeds = static_cast<std::uint64_t>(std::max<std::int64_t>(1, input.params.integer("seeds")));
    if (seeds == 1) {
        auto rewrite = build(input.seed);
        if (rewrite)
            rewrite->fitted["seed"] = static_cast<std::int64_t>(input.seed);
        return rewrite;
    }
    auto loss = SearchLoss::create(input, searchPart(input.params, SearchPart::Validation));
    if (!loss)
        return tl::make_unexpected(loss.error());
    BestTrial best;
    Rewrite chosen;
    for (std::uint64_t i = 0; i < seeds; ++i) {
        if (!reportTrial(input, "seeds", i, seeds))
            return cancelled(input.edge->id.value);
        const std::uint64_t seed = input.seed + i;
        auto rewrite = build(seed);
        if (!rewrite)
            return rewrite;
        const auto value = (*loss)(*rewrite);
        if (!value)
            return tl::make_unexpected(value.error());
        rewrite->fitted["seed"] = static_cast<std::int64_t>(seed);
        if (best.offer("seed=" + std::to_string(seed), static_cast<double>(seed), *value))
            chosen = std::move(*rewrite);
    }
    if (!best.any())
        return refusal(input.edge->id.value, "no seed gave a finite error", "finite rows and weights", "non_finite_factor");
    best.store(chosen);
    chosen.specs = input.specs;
    return chosen;
}

bool reportTrial(const FitInput &input, const std::string &stage, std::size_t done, std::size_t total)
{
    if (input.progress)
        input.progress(
            {.stage = stage, .done = static_cast<double>(done), .total = static_cast<double>(total), .unit = "trials"});
    return !input.stop.stop_requested();
}

} // namespace planish
