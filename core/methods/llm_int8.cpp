// LLM.int8() (arXiv 2208.07339; bitsandbytes): a few outlier columns of X and W stay exact and out of the steps. diagonal.md 4.
#include <algorithm>

#include "core/methods/channel_factors.h"
#include "core/methods/method_rows.h"
#include "core/methods/param_rows.h"
#include "core/transform/random_stream.h"

namespace planish {
namespace {

Precision precisionOf(const Params &params)
{
    if (params.isWord("precision", "fp16"))
        return Precision::Fp16;
    return params.isWord("precision", "bf16") ? Precision::Bf16 : Precision::Stored;
}

std::vector<std::int64_t> columnsAbove(const Statistics &statistics, double threshold, bool strict)
{
    std::vector<std::int64_t> columns;
    for (std::size_t k = 0; k < statistics.channel.maxAbs.size(); ++k) {
        const double a = statistics.channel.maxAbs[k];
        if (strict ? a > threshold : a >= threshold)
            columns.push_back(static_cast<std::int64_t>(k));
    }
    return columns;
}

/// Order of topk: by the asked statistic descending, or a random order of the seed.
std::vector<std::int64_t> rankedColumns(const FitInput &input)
{
    const std::string by = input.params.word("rank_by");
    if (by == "random") {
        std::vector<std::int64_t> order = channelsDescending(std::vector<double>(input.edge->channels, 0.0));
        RandomStream stream(input.seed, "topk_random" + input.purposeSuffix, input.streamId);
        stream.shuffle(order);
        return order;
    }
    if (by == "mean")
        return channelsDescending(channelStatistic(*input.statistics, ChannelStatistic::AbsMean));
    if (by == "energy")
        return channelsDescending(channelStatistic(*input.statistics, ChannelStatistic::Energy));
    if (by == "weight_norm")
        return channelsDescending(weightRms(input.consumers));
    return channelsDescending(channelStatistic(*input.statistics, ChannelStatistic::AbsMax));
}

Expected<std::vector<std::int64_t>> topColumns(const FitInput &input)
{
    const std::int64_t count = input.params.integer("count");
    if (count > static_cast<std::int64_t>(input.edge->channels))
        return usageError("llm_int8.count",
                          std::to_string(count) + " columns on an edge of " + std::to_string(input.edge->channels) + " channels",
                          "at most the number of channels");
    std::vector<std::int64_t> columns = rankedColumns(input);
    columns.resize(static_cast<std::size_t>(count));
    std::ranges::sort(columns);
    return columns;
}

Expected<std::vector<std::int64_t>> systematicColumns(const FitInput &input)
{
    for (const std::int64_t column : input.systematic)
        if (column >= static_cast<std::int64_t>(input.edge->channels))
            return refusal(input.edge->id.value, "the systematic dimension " + std::to_string(column) + " is of another width",
                           "an edge as wide as attn_in and mlp_in", "systematic");
    return input.systematic;
}

Expected<Rewrite> fitLlmInt8(const FitInput &input)
{
    const Params &params = input.params;
    const double threshold = params.real("threshold");
    const bool strict = params.isWord("comparator", "gt");
    Rewrite rewrite;
    rewrite.fitted["threshold"] = threshold;
    const bool thresholded = params.isWord("select", "static") || params.isWord("select", "dynamic");
    if (thresholded && threshold == 0) { // bitsandbytes: 0 means no decomposition
        rewrite.notes.push_back("llm_int8: threshold 0, no decomposition");
        return rewrite;
    }
    Exceptions exceptions;
    exceptions.activation = exceptions.weight = precisionOf(params);
    exceptions.stepThreshold = threshold;
    if (params.isWord("variant", "bitsandbytes")) {
        exceptions.weight = Precision::Quantized;
        exceptions.stepIgnores = StepIgnores::Elements;
    }
    if (params.isWord("select", "dynamic")) {
        exceptions.rule = DynamicExceptions{threshold, strict ? Comparator::Greater : Comparator::GreaterEqual,
                                            params.isWord("unit", "all") ? ExceptionUnit::All : ExceptionUnit::Request};
    } else {
        Expected<std::vector<std::int64_t>> columns = params.isWord("select", "topk") ? topColumns(input)
                                                      : params.isWord("select", "systematic")
                                                          ? systematicColumns(input)
                                                          : columnsAbove(*input.statistics, threshold, strict);
        if (!columns)
            return tl::make_unexpected(columns.error());
        rewrite.fitted["columns"] = static_cast<std::int64_t>(columns->size());
        exceptions.rule = StaticExceptions{std::move(*columns)};
    }
    rewrite.exceptions = std::move(exceptions);
    rewrite.notes.push_back("llm_int8: not a speed method");
    return rewrite;
}

} // namespace

MethodRow llmInt8Row()
{
    return {.key = "llm_int8",
            .label = "LLM.int8()",
            .source = "arXiv 2208.07339; bitsandbytes-foundation/bitsandbytes",
            .needs = {Need::Activations},
            .mustBeLast = true,
            .params = {enumParam("variant", {"paper", "bitsandbytes"},
                                 "paper: outlier columns of X and W exact and left out of the steps; bitsandbytes: weights as "
                                 "quantized over full K, row "
                                 "steps from elements below the threshold"),
                       enumParam("select", {"static", "dynamic", "systematic", "topk"},
                                 "columns from calibration rows; per unit of the rows multiplied; systematic dimensions of the "
                                 "model; the count largest"),
                       enumParam("unit", {"request", "all"}, "unit of a dynamic set; all: every scored row is one call"),
                       realParam("threshold", 0, 1e30, .5, "6.0", "magnitude of an outlier; 0: no decomposition"),
                       enumParam("comparator", {"ge", "gt"}, "at or above the threshold, or strictly above"),
                       integerParam("count", 0, 1 << 30, "0", "columns of select=topk"),
                       enumParam("rank_by", {"max", "mean", "energy", "weight_norm", "random"}, "order of select=topk"),
                       enumParam("precision", {"stored", "fp16", "bf16"}, "of the exact part"),
                       realParam("layer_fraction", 0, 1, .05, "0.25", "of select=systematic: share of layers hit"),
                       realParam("position_fraction", 0, 1, .01, "0.06", "of select=systematic: share of positions hit")},
            .fit = fitLlmInt8};
}

} // namespace planish
