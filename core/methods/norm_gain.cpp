#include "core/methods/norm_gain.h"

namespace planish {

Expected<Transform> absorbedGain(const FitInput &input)
{
    const std::string &edge = input.edge->id.value;
    if (!input.norm)
        return refusal(edge,
                       "gain=absorb needs the gain of the producing norm, which is " + kindOf(input.edge->producer) + " here",
                       "an edge behind a norm whose gain is in the files", "producer_unknown");
    const NormParameters &norm = *input.norm;
    ScaleOp scale;
    for (std::size_t k = 0; k < norm.gain.size(); ++k) {
        scale.divisor.push_back(static_cast<double>(norm.offset) + norm.gain[k]);
        if (scale.divisor.back() == 0.0)
            return refusal(edge, "the norm gain of channel " + std::to_string(k) + " is 0",
                           "rows from before the norm, or gain=keep", "non_finite_factor");
    }
    if (scale.divisor.size() != input.edge->channels)
        return refusal(edge, "the producing norm has " + std::to_string(scale.divisor.size()) + " gains",
                       std::to_string(input.edge->channels) + " gains", "norm_without_scale");
    Transform transform;
    transform.shift = norm.bias;
    transform.operators.push_back({std::move(scale)});
    return transform;
}

} // namespace planish
