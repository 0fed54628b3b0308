// SmoothQuant (arXiv 2211.10438; mit-han-lab/smoothquant): s_k = a_k^alpha / w_k^(1-alpha) moves range from activation channels
// to weight columns. Variants and their clamps: diagonal.md 5.3, 5.4.
#include <algorithm>
#include <cmath>

#include "core/methods/channel_factors.h"
#include "core/methods/method_rows.h"
#include "core/methods/param_rows.h"
#include "core/methods/search_loss.h"

namespace planish {
namespace {

// mit-han-lab/smoothquant smooth_ln_fcs, llm-compressor and neural-compressor floor w and s at this value.
constexpr double kToolFloor = 1e-5;

enum class Variant { Paper, Official, LlmCompressor, NeuralCompressor };

struct Rule {
    Variant variant = Variant::Paper;
    double weightFloor = 0, scaleFloor = 0;
};

Rule ruleOf(const Params &params)
{
    Rule rule;
    if (params.isWord("variant", "official"))
        rule = {Variant::Official, kToolFloor, kToolFloor};
    else if (params.isWord("variant", "llm_compressor"))
        rule = {Variant::LlmCompressor, 0, kToolFloor};
    else if (params.isWord("variant", "neural_compressor"))
        rule = {Variant::NeuralCompressor, kToolFloor, kToolFloor};
    if (!params.isWord("eps", "auto")) {
        rule.scaleFloor = params.real("eps");
        rule.weightFloor = rule.variant == Variant::LlmCompressor ? 0 : rule.scaleFloor;
    }
    return rule;
}

/// a and w per channel, reduced over ties.
struct Factors {
    std::vector<double> activation, weight;
};

Factors factorsOf(const FitInput &input, const Statistics &statistics, ConstViewD x, const Rule &rule)
{
    Factors factors;
    const bool compressor = rule.variant == Variant::LlmCompressor;
    if (compressor || input.params.isWord("stat", "range"))
        factors.activation = channelStatistic(statistics, ChannelStatistic::Range);
    else if (input.params.isWord("stat", "rms"))
        factors.activation = channelStatistic(statistics, ChannelStatistic::Rms);
    else if (input.params.isWord("stat", "percentile"))
        factors.activation = channelQuantile(x, input.params.real("percentile"));
    else
        factors.activation = channelStatistic(statistics, ChannelStatistic::AbsMax);
    factors.weight =
        !compressor && input.params.isWord("stat", "rms") ? weightRms(input.consumers) : weightMaxima(input.consumers);
    if (compressor) // its w is a range as well: max - min taken as 2 absmax
        for (double &value : factors.weight)
            value *= 2;
    factors.activation = reducedOverTies(std::move(factors.activation), input.ties, TieReduction::Max);
    factors.weight = reducedOverTies(std::move(factors.weight), input.ties, TieReduction::Max);
    return factors;
}

class Scale {
public:
    Scale(const Rule &rule, double alpha) : m_rule(rule), m_alpha(alpha) {}

    double operator()(double a, double w)
    {
        const bool deadIsOne = m_rule.variant == Variant::Paper || m_rule.variant == Variant::NeuralCompressor;
        if (a == 0 && deadIsOne) {
            ++clamps["dead_channels"];
            return 1;
        }
        if (w == 0 && m_rule.variant == Variant::Paper) {
            ++clamps["zero_weight_channels"];
            return 1;
        }
        double s = 0;
        if (w == 0 && m_rule.variant == Variant::LlmCompressor) {
            ++clamps["zero_weight_channels"];
            s = a;
        } else {
            if (w < m_rule.weightFloor) {
                ++clamps["weight_floor"];
                w = m_rule.weightFloor;
            }
            s = std::pow(a, m_alpha) / std::pow(w, 1 - m_alpha);
        }
        if (s < m_rule.scaleFloor) {
            ++clamps["scale_floor"];
            s = m_rule.scaleFloor;
        }
        return s;
    }

    std::map<std::string, std::int64_t> clamps;

private:
    Rule m_rule;
    double m_alpha = 0.5;
};

Expected<Rewrite> rewriteAt(const FitInput &input, const Factors &factors, const Rule &rule, double alpha)
{
    Scale scale(rule, alpha);
    ScaleOp op;
    for (std::size_t k = 0; k < factors.activation.size(); ++k) {
        op.divisor.push_back(scale(factors.activation[k], factors.weight[k]));
        if (!std::isnormal(op.divisor.back()))
            return refusal(input.edge->id.value, "the scale of channel " + std::to_string(k) + " cannot be represented",
                           "finite factors other than 0", "non_finite_factor");
    }
    Rewrite rewrite;
    rewrite.input.operators.push_back({std::move(op)});
    rewrite.fitted["alpha"] = alpha;
    rewrite.clamps = std::move(scale.clamps);
    return rewrite;
}

/// 0..1 by step, nearest to .5 first, then the smaller (diagonal.md 5.4).
std::vector<double> alphaGrid(double step)
{
    std::vector<double> grid;
    const auto count = static_cast<int>(std::floor(1.0 / step + 1e-9));
    for (int i = 0; i <= count; ++i)
        grid.push_back(std::min(1.0, i * step));
    std::ranges::stable_sort(grid, [](double a, double b) {
        const double da = std::abs(a - 0.5), db = std::abs(b - 0.5);
        return std::abs(da - db) > 1e-12 ? da < db : a < b;
    });
    return grid;
}

std::string alphaLabel(double alpha)
{
    std::string text = std::to_string(std::round(alpha * 1e6) / 1e6);
    text.erase(text.find_last_not_of('0') + 1);
    return "alpha=" + (text.ends_with('.') ? text + "0" : text);
}

Rewrite identityChosen(const FitInput &input)
{
    Rewrite rewrite;
    rewrite.input.operators.push_back({ScaleOp{std::vector<double>(input.edge->channels, 1.0)}});
    rewrite.fitted["alpha"] = std::monostate{};
    rewrite.fitted["identity"] = true;
    return rewrite;
}

/// search=output: ||E||_F of identity, then of the alphas; the chosen one is fitted on all calibration rows.
Expected<Rewrite> searchAlpha(const FitInput &input, const Rule &rule)
{
    auto loss = SearchLoss::create(input, searchPart(input.params, SearchPart::Fit));
    if (!loss)
        return tl::make_unexpected(loss.error());
    const bool all = loss->part() == SearchPart::Fit;
    const Statistics inner = all ? Statistics{} : statisticsOf(loss->fitRows().x().view());
    const Factors factors = factorsOf(input, all ? *input.statistics : inner, loss->fitRows().x().view(), rule);
    BestTrial best;
    const auto identity = (*loss)(Rewrite{});
    if (!identity)
        return tl::make_unexpected(identity.error());
    best.offer("identity", 0, *identity);
    const std::vector<double> grid = alphaGrid(input.params.real("search_step"));
    for (std::size_t i = 0; i < grid.size(); ++i) {
        if (!reportTrial(input, "smoothquant search", i, grid.size()))
            return cancelled(input.edge->id.value);
        const auto trial = rewriteAt(input, factors, rule, grid[i]);
        const auto value = trial ? (*loss)(*trial) : Expected<double>(std::nan(""));
        if (!value)
            return tl::make_unexpected(value.error());
        best.offer(alphaLabel(grid[i]), grid[i], *value);
    }
    if (!best.any())
        return refusal(input.edge->id.value, "no alpha gave a finite error", "finite rows and weights", "non_finite_factor");
    auto chosen = best.index() == 0 ? Expected<Rewrite>(identityChosen(input))
                                    : rewriteAt(input, factorsOf(input, *input.statistics, input.calibration.x().view(), rule),
                                                rule, grid[best.index() - 1]);
    if (chosen) {
        best.store(*chosen);
        chosen->specs = input.specs;
    }
    return chosen;
}

Expected<Rewrite> fitSmoothquant(const FitInput &input)
{
    const Rule rule = ruleOf(input.params);
    if (input.params.isWord("search", "output"))
        return searchAlpha(input, rule);
    const Factors factors = factorsOf(input, *input.statistics, input.calibration.x().view(), rule);
    return rewriteAt(input, factors, rule, input.params.real("alpha"));
}

} // namespace

MethodRow smoothquantRow()
{
    return {.key = "smoothquant",
            .label = "SmoothQuant",
            .source = "arXiv 2211.10438; mit-han-lab/smoothquant",
            .needs = {Need::Activations, Need::Weights},
            .params = {realParam("alpha", 0, 1, .05, "0.5",
                                 "smoothing strength: 0 evens the weight columns, 1 the activation channels"),
                       enumParam("search", {"off", "output"},
                                 "output: grid over 0..1 by output error with both quantizers; alpha is then ignored"),
                       realParam("search_step", .01, .5, .01, "0.05", "step of the grid"),
                       enumParam("stat", {"absmax", "rms", "percentile", "range"},
                                 "statistic of X; rms also takes the rms of W; range is max - min"),
                       realParam("percentile", .5, 1, .001, "0.999", "of stat=percentile"),
                       enumParam("variant", {"paper", "official", "llm_compressor", "neural_compressor"},
                                 "whose clamps and dead-channel rule"),
                       realParam("eps", 0, .01, 1e-5, "auto", "floor of w and s; auto by variant", {"auto"}), tiesParam(),
                       searchRowsParam()},
            .fit = fitSmoothquant};
}

} // namespace planish
