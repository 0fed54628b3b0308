#include "core/evaluate/intervention.h"

#include <algorithm>
#include <cmath>

#include "core/evaluate/intervention_effect.h"
#include "core/evaluate/intervention_place.h"
#include "core/evaluate/quantized_sides.h"

namespace planish {

namespace {

Expected<std::vector<double>> channelMeans(const EdgeData &data, std::stop_token stop)
{
    auto statistics = data.statistics(stop);
    if (!statistics)
        return tl::make_unexpected(statistics.error());
    const ChannelSums &channel = (*statistics)->channel;
    std::vector<double> means(channel.sum.size(), 0.0);
    for (std::size_t k = 0; k < means.size(); ++k)
        if (channel.finite[k] > 0)
            means[k] = channel.sum[k] / static_cast<double>(channel.finite[k]);
    return means;
}

Expected<void> checkAction(const EdgeData &data, const InterventionTarget &target, const InterventionAction &action,
                           const InterventionOptions &options)
{
    const std::string &edge = data.parts().edge.id.value;
    if (action.needsSpecs() && !options.specs)
        return usageError(edge, textOf(action) + " is about quantizers and none is given", "--act SPEC --weight SPEC");
    const bool onWeights = target.kind == TargetKind::Weight || target.kind == TargetKind::Channels;
    if (action.kind == ActionKind::WriteBack && !onWeights)
        return usageError(edge, "write_back restores weights and " + target.text + " is none", "a target weight:… or channels:…");
    if (data.parts().edge.channels == 0 || data.parts().consumers.empty())
        return dataError(edge, "there is no product to change", "channels and a consumer with weights");
    return {};
}

/// One intervention while it is measured.
class Measurement {
public:
    Measurement(const EdgeData &data, const PartRows &rows, const InterventionAction &action, const InterventionOptions &options,
                std::vector<double> means, std::stop_token stop)
        : m_data(data), m_rows(rows), m_action(action), m_options(options), m_full(rows, action, std::move(means)), m_stop(stop)
    {
    }

    Expected<void> prepare(Intervention &result)
    {
        if (!m_options.specs)
            return {};
        auto sides = quantizeSides(m_rows, *m_options.specs, {}, {}, m_stop);
        if (!sides)
            return tl::make_unexpected(sides.error());
        m_everything = std::move(*sides);
        auto everything = productError(m_rows, m_everything, TermDetail::ErrorOnly, m_stop);
        if (!everything)
            return tl::make_unexpected(everything.error());
        m_before = relativeOf(*everything);
        result.quantized = QuantizedChange{m_before, 0, m_before, {}};
        if (m_action.kind == ActionKind::Isolate)
            m_before = 0;
        if (m_action.kind == ActionKind::WriteBack) {
            auto weights = productError(m_rows, withExactActivation(m_rows, m_everything), TermDetail::ErrorOnly, m_stop);
            if (!weights)
                return tl::make_unexpected(weights.error());
            m_before = relativeOf(*weights);
        }
        result.quantized->before = m_before;
        return {};
    }

    Expected<void> measure(const Place &place, Intervention &result)
    {
        if (!m_action.needsSpecs()) {
            auto sums = m_full.sums(m_full.apply(place), m_stop);
            if (!sums)
                return tl::make_unexpected(sums.error());
            m_reference2 = pairwiseSum(sums->rowReference);
            result.fullPrecision = blockOf(m_data, m_rows, std::move(*sums));
            result.effect = result.fullPrecision->relativeFrobenius;
        }
        if (!m_options.specs)
            return {};
        auto sums = quantized(place, TermDetail::All);
        if (!sums)
            return tl::make_unexpected(sums.error());
        result.quantized->after = relativeOf(*sums);
        result.quantized->output = blockOf(m_data, m_rows, std::move(*sums));
        if (m_action.needsSpecs())
            result.effect = result.quantized->after - m_before;
        return {};
    }

    /// What the control compares: the change of Y, or after minus before of the quantized error.
    Expected<double> effect(const Place &place) const
    {
        if (!m_action.needsSpecs()) {
            auto error = m_full.error2(place);
            return error ? Expected<double>(std::sqrt(*error / m_reference2)) : error;
        }
        auto sums = quantized(place, TermDetail::ErrorOnly);
        return sums ? Expected<double>(relativeOf(*sums) - m_before) : tl::make_unexpected(sums.error());
    }

private:
    std::vector<ExceptionMask> weightMasks(const Place &place) const
    {
        std::vector<ExceptionMask> masks;
        for (std::size_t i = 0; i < m_rows.product.consumers.size(); ++i)
            masks.push_back(weightMask(place, i, *m_rows.product.consumers[i].weight));
        return masks;
    }

    Expected<QuantizedSides> sidesOf(const Place &place) const
    {
        const std::size_t channels = m_rows.product.x->cols();
        if (m_action.kind == ActionKind::Preserve) {
            const KeptElements kept{activationMask(place, m_rows.placed, channels),
                                    activationMask(place, m_rows.ranges, channels), weightMasks(place)};
            return quantizeSides(m_rows, *m_options.specs, {}, kept, m_stop);
        }
        if (m_action.kind == ActionKind::Isolate)
            return withErrors(m_rows, m_everything, FlaggedErrors::Keep, activationMask(place, m_rows.placed, channels),
                              weightMasks(place));
        if (m_action.kind == ActionKind::WriteBack)
            return withErrors(m_rows, withExactActivation(m_rows, m_everything), FlaggedErrors::Drop, {}, weightMasks(place));
        ChangedMatrices changed = m_full.apply(place);
        return quantizeSides(m_rows, *m_options.specs,
                             {std::move(changed.x), std::move(changed.ranges), std::move(changed.weights)}, {}, m_stop);
    }

    Expected<ResidualSums> quantized(const Place &place, TermDetail detail) const
    {
        auto sides = sidesOf(place);
        return sides ? productError(m_rows, *sides, detail, m_stop) : tl::make_unexpected(sides.error());
    }

    const EdgeData &m_data;
    const PartRows &m_rows;
    const InterventionAction &m_action;
    const InterventionOptions &m_options;
    FullPrecisionAction m_full;
    std::stop_token m_stop;
    QuantizedSides m_everything;
    double m_before = 0, m_reference2 = 0;
};

void summarise(Intervention &result)
{
    ControlFigures &control = result.control;
    control.sets = control.values.size();
    if (control.sets == 0)
        return;
    const auto count = static_cast<double>(control.sets);
    control.mean = pairwiseSum(control.values) / count;
    control.max = *std::ranges::max_element(control.values);
    if (control.sets > 1) {
        std::vector<double> squares;
        for (const double value : control.values)
            squares.push_back((value - *control.mean) * (value - *control.mean));
        control.standardDeviation = std::sqrt(pairwiseSum(squares) / (count - 1));
    }
    if (*control.mean != 0)
        result.ratio = result.effect / *control.mean;
}

Expected<void> addControl(const Measurement &measurement, const std::vector<Place> &places, Intervention &result,
                          std::stop_token stop, const ProgressSink &progress)
{
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (stop.stop_requested())
            return cancelled(result.edge.value);
        if (progress)
            progress({.stage = "control",
                      .done = static_cast<double>(i),
                      .total = static_cast<double>(places.size()),
                      .unit = "targets"});
        auto effect = measurement.effect(places[i]);
        if (!effect)
            return tl::make_unexpected(effect.error());
        result.control.values.push_back(*effect);
    }
    summarise(result);
    return {};
}

Intervention blank(const EdgeData &data, const PartRows &rows, const InterventionTarget &target, const InterventionAction &action,
                   const InterventionOptions &options)
{
    Intervention result;
    result.edge = data.parts().edge.id;
    result.target = target;
    result.action = action;
    result.part = options.part;
    result.rows = static_cast<std::int64_t>(rows.placed.size());
    result.available = rows.available;
    result.specs = options.specs;
    return result;
}

void noteWhatIsMissing(const InterventionOptions &options, Intervention &result)
{
    if (result.control.sets < options.control)
        result.notes.push_back(
            "control: what is left beside the target is smaller than it, so no random target of its size exists");
    if (options.control == 0)
        result.notes.push_back("control: none was asked for");
    else if (result.control.sets > 0 && !result.ratio)
        result.notes.push_back("ratio: the random targets change nothing");
    if (result.action.kind == ActionKind::WriteBack)
        result.notes.push_back("write_back: activations stay as stored; before is the error of the quantized weights alone");
    if (result.action.kind == ActionKind::Isolate)
        result.notes.push_back("isolate: before is the edge without quantizers");
}

} // namespace

Expected<Intervention> intervene(const EdgeData &data, const InterventionTarget &target, const InterventionAction &action,
                                 const InterventionOptions &options, std::stop_token stop, const ProgressSink &progress)
{
    if (auto checked = checkAction(data, target, action, options); !checked)
        return tl::make_unexpected(checked.error());
    auto rows = partRows(data, options.part);
    if (!rows)
        return tl::make_unexpected(rows.error());
    auto place = placeOn(data, *rows, target);
    if (!place)
        return tl::make_unexpected(place.error());
    auto means = channelMeans(data, stop);
    if (!means)
        return tl::make_unexpected(means.error());
    Intervention result = blank(data, *rows, target, action, options);
    Measurement measurement(data, *rows, action, options, std::move(*means), stop);
    if (auto done = measurement.prepare(result); !done)
        return tl::make_unexpected(done.error());
    if (auto done = measurement.measure(*place, result); !done)
        return tl::make_unexpected(done.error());
    const auto places = controlPlaces(data, *rows, *place, options.control, options.seed);
    if (auto done = addControl(measurement, places, result, stop, progress); !done)
        return tl::make_unexpected(done.error());
    noteWhatIsMissing(options, result);
    return result;
}

} // namespace planish
