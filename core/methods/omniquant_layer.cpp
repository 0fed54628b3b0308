#include "core/methods/omniquant_layer.h"

#include <algorithm>
#include <cmath>

#include "core/methods/channel_factors.h"
#include "core/methods/rotation_parts.h"
#include "core/methods/share_ranges.h"

namespace planish {
namespace {

constexpr double kOfficialFloor = .01; // truncation of the released code, diagonal.md 9.2

/// The grid of X' while it is trained on: its range comes from the rows at hand.
NumberGrid trainingGrid(const QuantSpec &spec)
{
    NumberGrid grid = spec.grid;
    grid.timing = Timing::Dynamic;
    return grid;
}

/// (minimum + maximum)/2 of every tie set.
std::vector<double> midpoints(const FitInput &input)
{
    std::vector<double> low = input.statistics->channel.minimum;
    for (double &value : low)
        value = -value;
    low = reducedOverTies(std::move(low), input.ties, TieReduction::Max);
    std::vector<double> middle = reducedOverTies(input.statistics->channel.maximum, input.ties, TieReduction::Max);
    for (std::size_t k = 0; k < middle.size(); ++k)
        middle[k] = (middle[k] - low[k]) / 2;
    return middle;
}

} // namespace

OmniLayer::OmniLayer(const FitInput &input, const MatrixD &x, OmniOptions options)
    : m_input(input), m_options(options), m_x(eigenMatrix(x)), m_quantizesX(!input.specs.act.isNone())
{
    for (const ConsumerWeights &consumer : input.consumers) {
        m_w.push_back(eigenMatrix(*consumer.weight));
        m_y.push_back(m_x * m_w.back().transpose());
        m_outputs += static_cast<double>(m_w.back().rows());
    }
}

OmniState OmniLayer::start(std::int64_t &dead) const
{
    OmniState state{std::vector<double>(setCount(), m_options.logScale ? 0.0 : 1.0), std::vector<double>(setCount(), 0.0), {}};
    const auto a = reducedOverTies(channelStatistic(*m_input.statistics, ChannelStatistic::AbsMax), m_input.ties, TieReduction::Max);
    const std::vector<ConsumerWeights> first{m_input.consumers.front()};
    const auto w = reducedOverTies(weightMaxima(m_options.official ? first : m_input.consumers), m_input.ties, TieReduction::Max);
    const auto factors = smoothingFactors(a, w, m_input.params.real("alpha"), dead);
    const auto middle = midpoints(m_input);
    for (std::size_t k = 0; k < channels(); ++k) {
        if (m_options.scale)
            state.scale[setOf(k)] = m_options.logScale ? std::log(factors[k]) : factors[k];
        if (m_options.shift)
            state.shift[setOf(k)] = middle[k];
    }
    for (const Dense &w : m_w) {
        const std::size_t shares = shareCount(m_input.specs.weight.grid, std::size_t(w.rows()), std::size_t(w.cols()));
        const std::vector<double> logits(shares, m_input.params.real("init"));
        state.clips.push_back({logits, logits});
    }
    return state;
}

void OmniLayer::truncate(OmniState &state) const
{
    if (!m_options.official && m_options.logScale)
        return;
    const double least = m_options.logScale ? std::log(kOfficialFloor) : kOfficialFloor;
    for (double &value : state.scale)
        value = std::max(value, least);
}

double OmniLayer::scaleAt(const OmniState &state, std::size_t k) const
{
    const double raw = state.scale[setOf(k)];
    return m_options.logScale ? std::exp(raw) : raw;
}

Rewrite OmniLayer::rewriteOf(const OmniState &state) const
{
    Rewrite rewrite;
    ScaleOp scale;
    for (std::size_t k = 0; k < channels(); ++k) {
        if (m_options.shift)
            rewrite.input.shift.push_back(state.shift[setOf(k)]);
        if (m_options.scale)
            scale.divisor.push_back(scaleAt(state, k));
    }
    if (m_options.scale)
        rewrite.input.operators.push_back({std::move(scale)});
    for (std::size_t i = 0; m_options.clip && i < state.clips.size(); ++i) {
        Clip clip{.target = Target::Weight, .kind = Clip::Kind::Multiplier, .lo = {}, .hi = {}, .consumer = i};
        std::ranges::transform(state.clips[i].high, std::back_inserter(clip.hi), sigmoid);
        std::ranges::transform(state.clips[i].low, std::back_inserter(clip.lo), sigmoid);
        rewrite.clips.push_back(std::move(clip));
    }
    return rewrite;
}

OmniState OmniLayer::zeros(const OmniState &like) const
{
    OmniState slopes{std::vector<double>(setCount(), 0.0), std::vector<double>(setCount(), 0.0), {}};
    for (const ClipLogits &clip : like.clips)
        slopes.clips.push_back({std::vector<double>(clip.high.size(), 0.0), std::vector<double>(clip.low.size(), 0.0)});
    return slopes;
}

Expected<OmniLayer::Step> OmniLayer::stepAt(const OmniState &state, std::size_t begin, std::size_t count) const
{
    Step step;
    step.begin = Eigen::Index(begin);
    step.s = Eigen::VectorXd::Ones(Eigen::Index(channels()));
    step.c = Eigen::VectorXd::Zero(Eigen::Index(channels()));
    for (std::size_t k = 0; k < channels(); ++k) {
        if (m_options.scale)
            step.s(Eigen::Index(k)) = scaleAt(state, k);
        if (m_options.shift)
            step.c(Eigen::Index(k)) = state.shift[setOf(k)];
    }
    const auto rows = m_x.middleRows(Eigen::Index(begin), Eigen::Index(count));
    step.x = (rows.rowwise() - step.c.transpose()) * step.s.cwiseInverse().asDiagonal();
    step.toX = Dense::Zero(step.x.rows(), step.x.cols());
    if (!m_quantizesX) {
        step.quantized = step.x;
        return step;
    }
    auto quantized = clippedMatrix(*m_input.backend, step.x, trainingGrid(m_input.specs.act), nullptr, m_input.edge->id.value);
    if (!quantized)
        return tl::make_unexpected(quantized.error());
    step.quantized = std::move(quantized->value);
    return step;
}

/// One consumer: its weights through the clips, its share of the loss, and what flows back.
Expected<void> OmniLayer::throughConsumer(std::size_t i, const OmniState &state, Step &step, OmniState &slopes) const
{
    const NumberGrid &grid = m_input.specs.weight.grid;
    const ClipLogits *logits = m_options.clip ? &state.clips[i] : nullptr;
    const Dense w = m_w[i] * step.s.asDiagonal();
    auto clipped = clippedMatrix(*m_input.backend, w, grid, logits, m_input.edge->id.value);
    if (!clipped)
        return tl::make_unexpected(clipped.error());
    Dense error = step.quantized * clipped->value.transpose() - m_y[i].middleRows(step.begin, step.x.rows());
    if (m_options.shift)
        error.rowwise() += (m_w[i] * step.c).transpose();
    error *= 2.0 / (static_cast<double>(step.x.rows()) * m_outputs);
    step.toX += error * clipped->value;
    const Dense toW = backThroughClip(w, *clipped, grid, logits, error.transpose() * step.quantized, logits ? &slopes.clips[i] : nullptr);
    const Eigen::VectorXd toScale = toW.cwiseProduct(m_w[i]).colwise().sum();
    const Eigen::VectorXd toShift = m_w[i].transpose() * error.colwise().sum().transpose();
    for (std::size_t k = 0; k < channels(); ++k) {
        slopes.scale[setOf(k)] += toScale(Eigen::Index(k)) * (m_options.logScale ? step.s(Eigen::Index(k)) : 1.0);
        slopes.shift[setOf(k)] += toShift(Eigen::Index(k));
    }
    return {};
}

/// dL/dXq becomes dL/dX'. Detached: the rounding is passed straight and the step is a constant.
Expected<void> OmniLayer::throughActivations(Step &step) const
{
    const QuantSpec &act = m_input.specs.act;
    if (!m_options.activationStep || !m_quantizesX || isBlockFormat(act.grid.format))
        return {};
    const NumberGrid grid = trainingGrid(act);
    auto clipped = clippedMatrix(*m_input.backend, step.x, grid, nullptr, m_input.edge->id.value);
    if (!clipped)
        return tl::make_unexpected(clipped.error());
    step.toX = backThroughClip(step.x, *clipped, grid, nullptr, step.toX, nullptr);
    return {};
}

Expected<OmniState> OmniLayer::slopes(const OmniState &state, std::size_t begin, std::size_t count) const
{
    auto step = stepAt(state, begin, count);
    if (!step)
        return tl::make_unexpected(step.error());
    OmniState slopes = zeros(state);
    for (std::size_t i = 0; i < m_w.size(); ++i)
        if (auto done = throughConsumer(i, state, *step, slopes); !done)
            return tl::make_unexpected(done.error());
    if (auto done = throughActivations(*step); !done)
        return tl::make_unexpected(done.error());
    for (std::size_t k = 0; k < channels(); ++k) {
        const auto at = Eigen::Index(k);
        const double toS = step->toX.col(at).dot(step->x.col(at)) / step->s(at); // X' = (X - c)/s: dX'/ds = -X'/s
        slopes.scale[setOf(k)] -= m_options.logScale ? toS * step->s(at) : toS;
        slopes.shift[setOf(k)] -= step->toX.col(at).sum() / step->s(at);
    }
    return slopes;
}

} // namespace planish
