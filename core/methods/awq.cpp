// AWQ (arXiv 2306.00978; mit-han-lab/llm-awq, casper-hansen/AutoAWQ, vllm-project/llm-compressor): scale up weight columns that meet
// large activations, strength by grid search on output error, then an optional clip search. diagonal.md 6.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/methods/awq_clip.h"
#include "core/methods/channel_factors.h"
#include "core/methods/method_rows.h"
#include "core/methods/param_rows.h"
#include "core/methods/search_loss.h"
#include "core/methods/share_ranges.h"

namespace planish {
namespace {

// Constants of the tools: t >= 1e-4; 1e-4 and 1e-6 keep quotients finite (diagonal.md 6.1).
constexpr double kSmallestT = 1e-4, kDuoEps = 1e-4, kGroupEps = 1e-6;

enum class Mode { Identity, Plain, Duo };

struct Trial {
    Mode mode = Mode::Plain;
    double ratio = 0;
};

struct Means {
    std::vector<double> x, w;
};

/// Mean over all rows of all consumers of |W| / (group maximum + 1e-6).
std::vector<double> weightMeans(const FitInput &input)
{
    NumberGrid grid = input.specs.weight.grid;
    if (grid.sharing != Sharing::Group && grid.sharing != Sharing::Block)
        grid.sharing = Sharing::Row;
    std::vector<double> means(input.edge->channels, 0.0);
    double rows = 0;
    for (const ConsumerWeights &consumer : input.consumers) {
        const MatrixD &w = *consumer.weight;
        const FixedRanges ranges = shareRanges(grid, w.view());
        const std::size_t perRow = sharesPerRow(grid, w.cols());
        const std::size_t width = grid.sharing == Sharing::Row ? w.cols() : std::min(grid.group, w.cols());
        for (std::size_t n = 0; n < w.rows(); ++n) {
            for (std::size_t k = 0; k < w.cols(); ++k) {
                const Range &range = ranges[n * perRow + (grid.sharing == Sharing::Row ? 0 : k / width)];
                means[k] += std::abs(w(n, k)) / (std::max(std::abs(range.lo), std::abs(range.hi)) + kGroupEps);
            }
        }
        rows += double(w.rows());
    }
    for (double &mean : means)
        mean /= rows;
    return means;
}

std::string duoOf(const Params &params)
{
    if (!params.isWord("duo", "auto"))
        return params.word("duo");
    return params.isWord("variant", "llm_awq") ? "off" : "on";
}

std::vector<double> ratios(std::int64_t count, std::int64_t divisor)
{
    std::vector<double> grid;
    for (std::int64_t i = 0; i < count; ++i)
        grid.push_back(divisor > 0 ? double(i) / double(divisor) : 0.0);
    return grid;
}

/// Candidates in documented order (parameters.md "awq"); identity always is one of them.
std::vector<Trial> trialsOf(const Params &params)
{
    const std::int64_t grid = params.integer("grid");
    const std::string duo = duoOf(params);
    std::vector<Trial> trials{{Mode::Identity, std::numeric_limits<double>::quiet_NaN()}};
    auto add = [&](Mode mode, const std::vector<double> &values) {
        for (double r : values)
            trials.push_back({mode, r});
    };
    if (!params.isWord("ratio", "auto")) {
        if (duo != "on")
            add(Mode::Plain, {params.real("ratio")});
        if (duo != "off")
            add(Mode::Duo, {params.real("ratio")});
        return trials;
    }
    const bool compressor = params.isWord("variant", "llm_compressor");
    if (duo == "both") {
        const auto values = compressor ? ratios(grid / 2, grid / 2 - 1) : ratios(grid, grid);
        add(Mode::Plain, values);
        add(Mode::Duo, values);
    } else if (duo == "on") {
        add(Mode::Duo, compressor ? ratios(grid - 1, grid - 2) : ratios(grid, grid));
    } else {
        add(Mode::Plain, compressor ? ratios(grid, grid - 1) : ratios(grid, grid));
    }
    return trials;
}

Rewrite rewriteAt(const Means &means, const Trial &trial)
{
    Rewrite rewrite;
    if (trial.mode == Mode::Identity) {
        rewrite.fitted["identity"] = true;
        return rewrite;
    }
    ScaleOp scale{std::vector<double>(means.x.size(), 1.0)};
    double high = 0, low = std::numeric_limits<double>::infinity();
    std::int64_t dead = 0;
    for (std::size_t k = 0; k < means.x.size(); ++k) {
        if (means.x[k] == 0.0) {
            ++dead;
            continue;
        }
        double t = std::pow(means.x[k], trial.ratio);
        if (trial.mode == Mode::Duo)
            t /= std::pow(means.w[k], 1 - trial.ratio) + kDuoEps;
        t = std::max(t, kSmallestT);
        scale.divisor[k] = t;
        high = std::max(high, t);
        low = std::min(low, t);
    }
    const double norm = std::sqrt(high * low);
    for (std::size_t k = 0; k < means.x.size(); ++k)
        if (means.x[k] != 0.0)
            scale.divisor[k] /= norm;
    if (dead > 0)
        rewrite.clamps["dead_channels"] = dead;
    rewrite.fitted["ratio"] = trial.ratio;
    rewrite.fitted["duo"] = std::string(trial.mode == Mode::Duo ? "on" : "off");
    rewrite.input.operators.push_back({std::move(scale)});
    return rewrite;
}

Expected<Rewrite> searchScale(const FitInput &input)
{
    auto loss = SearchLoss::create(input, searchPart(input.params, SearchPart::Fit));
    if (!loss)
        return tl::make_unexpected(loss.error());
    Means means{channelStatistic(*input.statistics, ChannelStatistic::AbsMean), weightMeans(input)};
    means.x = reducedOverTies(std::move(means.x), input.ties, TieReduction::Mean);
    means.w = reducedOverTies(std::move(means.w), input.ties, TieReduction::Mean);
    // The loss uses unquantized X whatever the activation spec says.
    SpecPair exactActivations = input.specs;
    exactActivations.act = QuantSpec{};
    const std::vector<Trial> trials = trialsOf(input.params);
    BestTrial best;
    Rewrite chosen;
    for (std::size_t i = 0; i < trials.size(); ++i) {
        if (!reportTrial(input, "awq", i, trials.size()))
            return cancelled(input.edge->id.value);
        Rewrite trial = rewriteAt(means, trials[i]);
        auto value = loss->underSpecs(trial, exactActivations);
        if (!value)
            return tl::make_unexpected(value.error());
        const std::string label = trials[i].mode == Mode::Identity ? "identity" : (trials[i].mode == Mode::Duo ? "duo " : "") + std::string("ratio=") + std::to_string(trials[i].ratio);
        if (best.offer(label, trials[i].ratio, *value))
            chosen = std::move(trial);
    }
    best.store(chosen);
    return chosen;
}

Expected<void> addClips(const FitInput &input, Rewrite &rewrite)
{
    const AwqClipOptions options{input.params.integer("clip_grid"), input.params.real("clip_shrink"), input.params.integer("clip_rows")};
    const std::vector<std::string> skipped = input.params.list("skip_clip");
    const MatrixD x = applyToActivations(rewrite.input, input.calibration.x().view());
    for (std::size_t i = 0; i < input.consumers.size(); ++i) {
        if (std::ranges::find(skipped, input.consumers[i].consumer.role) != skipped.end())
            continue;
        if (!reportTrial(input, "awq clip", i, input.consumers.size()))
            return cancelled(input.edge->id.value);
        auto w = applyToWeights(rewrite.input, input.consumers[i].weight->view());
        if (!w)
            return tl::make_unexpected(w.error());
        auto bounds = awqClipBounds(*input.backend, x, *w, input.specs.weight.grid, options, input.edge->id.value);
        if (!bounds)
            return tl::make_unexpected(bounds.error());
        rewrite.clips.push_back({.target = Target::Weight, .kind = Clip::Kind::AbsoluteBound, .lo = {}, .hi = std::move(*bounds), .consumer = i, .clampsValues = true});
    }
    return {};
}

Expected<Rewrite> fitAwq(const FitInput &input)
{
    if (input.specs.weight.isNone())
        return refusal(input.edge->id.value, "awq chooses by the error of quantized weights, and --weight is none", "a weight spec such as int4:group128", "specs");
    auto rewrite = searchScale(input);
    if (!rewrite)
        return rewrite;
    rewrite->specs = input.specs;
    if (input.params.isWord("clip", "on") && !input.params.isWord("variant", "llm_compressor")) {
        if (auto done = addClips(input, *rewrite); !done)
            return tl::make_unexpected(done.error());
    }
    return rewrite;
}

} // namespace

MethodRow awqRow()
{
    return {.key = "awq",
            .label = "AWQ",
            .source = "arXiv 2306.00978; mit-han-lab/llm-awq, casper-hansen/AutoAWQ, vllm-project/llm-compressor",
            .needs = {Need::Activations, Need::Weights, Need::Specs},
            .params = {enumParam("variant", {"llm_awq", "autoawq", "llm_compressor"}, "which tool's grid and default duo"),
                       enumParam("duo", {"auto", "off", "on", "both"}, "weight term in t; auto: off for llm_awq, else on"),
                       realParam("ratio", 0, 1, 0.05, "auto", "a fixed ratio instead of the grid", {"auto"}),
                       integerParam("grid", 2, 200, "20", "number of ratios"), enumParam("clip", {"on", "off"}, "clip search after scaling"),
                       integerParam("clip_grid", 2, 200, "20", "bounds m0 (1 - i / clip_grid)"),
                       realParam("clip_shrink", 0, 0.95, 0.05, "0.5", "largest share taken off"),
                       integerParam("clip_rows", 16, 8192, "512", "tokens the clip search samples"),
                       listParam("skip_clip", "none", "consumer roles left out of the clip search (exact names)"), tiesParam(), searchRowsParam()},
            .fit = fitAwq};
}

} // namespace planish
