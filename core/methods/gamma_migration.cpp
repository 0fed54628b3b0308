// Outlier Suppression's Gamma Migration (arXiv 2209.13325; wimh966/outlier_suppression): the norm's gain moves into its readers.
// No data, no search. diagonal.md 7.
#include <cmath>

#include "core/methods/method_rows.h"
#include "core/methods/param_rows.h"

namespace planish {
namespace {

Expected<Rewrite> fitGammaMigration(const FitInput &input)
{
    const std::string &edge = input.edge->id.value;
    if (!input.norm)
        return refusal(edge, "gamma_migration needs the gain of the producing norm, which is " + kindOf(input.edge->producer) + " here",
                       "an edge behind a norm whose gain is in the files", "producer_unknown");
    const NormParameters &norm = *input.norm;
    if (norm.gain.size() != input.edge->channels)
        return refusal(edge, "the producing norm has " + std::to_string(norm.gain.size()) + " gains", std::to_string(input.edge->channels) + " gains",
                       "norm_without_scale");
    const double smallest = input.params.real("min_gamma");
    ScaleOp scale;
    for (std::size_t k = 0; k < norm.gain.size(); ++k) {
        const double gamma = norm.offset + norm.gain[k];
        if (std::abs(gamma) <= smallest || !std::isfinite(gamma))
            return refusal(edge, "the gain of channel " + std::to_string(k) + " is " + std::to_string(gamma),
                           "gains above " + std::to_string(smallest) + " in magnitude (min_gamma)", "non_finite_factor");
        scale.divisor.push_back(gamma);
    }
    Rewrite rewrite;
    for (const OtherReader &reader : input.edge->otherReaders) {
        if (reader.kind == "residual")
            rewrite.otherReaders.push_back({.reader = reader.name, .multiply = scale.divisor, .addToBias = {}, .biasOf = {}});
    }
    if (norm.kind == "rmsnorm")
        rewrite.notes.push_back("gamma_migration on an RMSNorm is outside the paper's scope: analysis");
    rewrite.input.operators.push_back({std::move(scale)});
    return rewrite;
}

} // namespace

MethodRow gammaMigrationRow()
{
    return {.key = "gamma_migration",
            .label = "Gamma Migration",
            .source = "arXiv 2209.13325; wimh966/outlier_suppression",
            .needs = {Need::Norm},
            .params = {realParam("min_gamma", 0, 1, 0.001, "0", "refuse when a gain is at or below this magnitude")},
            .fit = fitGammaMigration};
}

} // namespace planish
