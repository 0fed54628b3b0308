#include "core/evaluate/output_block.h"

#include <algorithm>
#include <cmath>

#include "core/methods/channel_factors.h"

namespace planish {
namespace {

std::vector<double> relativeRows(const ErrorSums &sums)
{
    std::vector<double> relative;
    for (std::size_t m = 0; m < sums.sums.rowError.size(); ++m)
        if (sums.sums.rowReference[m] > 0)
            relative.push_back(std::sqrt(sums.sums.rowError[m] / sums.sums.rowReference[m]));
    return relative;
}

WorstToken tokenAt(const ErrorSums &sums, std::size_t m, double value, const TokenTable &tokens, const DumpEdge &edge)
{
    WorstToken worst;
    worst.row = sums.fileRows[m];
    worst.value = value;
    const auto token = static_cast<std::size_t>(tokenOfRow(edge, worst.row));
    if (token < tokens.size()) {
        worst.request = tokens.request[token];
        worst.position = token < tokens.position.size() ? tokens.position[token] : 0;
        if (token < tokens.text.size())
            worst.text = tokens.text[token];
    }
    return worst;
}

void fillWorstTokens(OutputBlock &block, const ErrorSums &sums, const TokenTable &tokens, const DumpEdge &edge)
{
    double largest = -1, largestError = -1;
    std::size_t relativeRow = 0, absoluteRow = 0;
    for (std::size_t m = 0; m < sums.sums.rowError.size(); ++m) {
        if (sums.sums.rowError[m] > largestError) {
            largestError = sums.sums.rowError[m];
            absoluteRow = m;
        }
        if (sums.sums.rowReference[m] > 0 && sums.sums.rowError[m] / sums.sums.rowReference[m] > largest) {
            largest = sums.sums.rowError[m] / sums.sums.rowReference[m];
            relativeRow = m;
        }
    }
    if (largest >= 0)
        block.worstToken = tokenAt(sums, relativeRow, std::sqrt(largest), tokens, edge);
    if (largestError >= 0)
        block.worstTokenAbsolute = tokenAt(sums, absoluteRow, std::sqrt(largestError), tokens, edge);
}

WorstChannel channelAt(const ErrorSums &sums, const std::vector<std::string> &consumers, std::size_t stacked, double value)
{
    WorstChannel worst{.consumer = {},
                       .channel = static_cast<std::int64_t>(stacked),
                       .stacked = static_cast<std::int64_t>(stacked),
                       .value = value};
    for (std::size_t i = 0; i < sums.consumerOutputs.size(); ++i) {
        if (worst.channel < static_cast<std::int64_t>(sums.consumerOutputs[i])) {
            worst.consumer = consumers[i];
            break;
        }
        worst.channel -= static_cast<std::int64_t>(sums.consumerOutputs[i]);
    }
    return worst;
}

void fillWorstChannels(OutputBlock &block, const ErrorSums &sums, const std::vector<std::string> &consumers)
{
    double largest = -1, largestError = -1;
    std::size_t relativeAt = 0, absoluteAt = 0;
    for (std::size_t n = 0; n < sums.sums.outputError.size(); ++n) {
        if (sums.sums.outputError[n] > largestError) {
            largestError = sums.sums.outputError[n];
            absoluteAt = n;
        }
        if (sums.sums.outputReference[n] > 0 && sums.sums.outputError[n] / sums.sums.outputReference[n] > largest) {
            largest = sums.sums.outputError[n] / sums.sums.outputReference[n];
            relativeAt = n;
        }
    }
    if (largest >= 0)
        block.worstChannel = channelAt(sums, consumers, relativeAt, std::sqrt(largest));
    if (largestError >= 0)
        block.worstChannelAbsolute = channelAt(sums, consumers, absoluteAt, std::sqrt(largestError));
}

void fillConsumers(OutputBlock &block, const ErrorSums &sums, const std::vector<std::string> &consumers)
{
    std::size_t first = 0;
    for (std::size_t i = 0; i < sums.consumerOutputs.size(); ++i) {
        const auto part = [&](const std::vector<double> &values) {
            return pairwiseSum(std::span(values).subspan(first, sums.consumerOutputs[i]));
        };
        const double reference = part(sums.sums.outputReference);
        block.perConsumer.push_back({consumers[i], std::sqrt(part(sums.sums.outputError) / reference)});
        first += sums.consumerOutputs[i];
    }
}

/// Share of ||Y||^2 in the largest ceil(1 %) of rows.
double topRowsShare(const ErrorSums &sums)
{
    std::vector<double> energy = sums.sums.rowReference;
    std::ranges::sort(energy, std::greater<>());
    const std::size_t top = (energy.size() + 99) / 100;
    const double total = sums.reference2();
    return total > 0 ? pairwiseSum(std::span(energy).first(top)) / total : 0.0;
}

} // namespace

RowFigures rowFigures(const ErrorSums &sums)
{
    std::vector<double> relative = relativeRows(sums);
    if (relative.empty())
        return {};
    RowFigures figures;
    std::vector<double> squares(relative.size());
    std::ranges::transform(relative, squares.begin(), [](double r) { return r * r; });
    figures.rms = std::sqrt(pairwiseSum(squares) / static_cast<double>(squares.size()));
    std::ranges::sort(relative);
    figures.median = relative[(relative.size() - 1) / 2];
    figures.p95 = linearQuantile(relative, .95);
    figures.max = relative.back();
    return figures;
}

OutputBlock outputBlock(const ErrorSums &sums, const std::vector<std::string> &consumers, const TokenTable &tokens,
                        const DumpEdge &edge)
{
    OutputBlock block;
    const double error = sums.error2(), reference = sums.reference2();
    const double count = static_cast<double>(sums.sums.rowError.size()) * static_cast<double>(sums.sums.outputError.size());
    block.relativeFrobenius = std::sqrt(error / reference);
    block.sqnrDb = -20 * std::log10(block.relativeFrobenius);
    block.mse = error / count;
    block.cosine = pairwiseSum(sums.sums.rowDot) / std::sqrt(pairwiseSum(sums.sums.rowEstimate) * reference);
    block.maxAbs = sums.sums.maxAbs;
    block.rows = rowFigures(sums);
    block.topRowsShare = topRowsShare(sums);
    block.tokenDominated = block.topRowsShare > .5;
    fillWorstTokens(block, sums, tokens, edge);
    fillWorstChannels(block, sums, consumers);
    fillConsumers(block, sums, consumers);
    return block;
}

ErrorTerms errorTerms(const ErrorSums &sums)
{
    const double reference = sums.reference2();
    ErrorTerms terms;
    terms.activationOnly = pairwiseSum(sums.sums.rowActivationOnly) / reference;
    terms.weightOnly = pairwiseSum(sums.sums.rowWeightOnly) / reference;
    terms.cross = pairwiseSum(sums.sums.rowCross) / reference;
    terms.interaction = sums.error2() / reference - (terms.activationOnly + terms.weightOnly + terms.cross);
    return terms;
}

TensorError tensorErrorOf(const QuantizeCounts &counts)
{
    TensorError error;
    const double elements = static_cast<double>(std::max<std::size_t>(counts.elements, 1));
    error.zeroedFraction = static_cast<double>(counts.zeroed) / elements;
    error.saturatedFraction = static_cast<double>(counts.saturated) / elements;
    if (counts.energy > 0) {
        error.relativeFrobenius = std::sqrt(counts.squaredError / counts.energy);
        error.zeroedEnergy = counts.zeroedEnergy / counts.energy;
    }
    return error;
}

} // namespace planish
