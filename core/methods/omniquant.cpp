// OmniQuant (arXiv 2308.13137; OpenGVLab/OmniQuant) on one edge: learned weight clipping (LWC) and a learned diagonal scale and shift
// (LET), by AdamW on the layer error through the quantizers. diagonal.md 9.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <Eigen/Dense>

#include "core/methods/adam.h"
#include "core/methods/dense.h"
#include "core/methods/channel_factors.h"
#include "core/methods/kernel_result.h"
#include "core/methods/method_rows.h"
#include "core/methods/param_rows.h"
#include "core/methods/rotation_parts.h"
#include "core/methods/search_loss.h"
#include "core/methods/share_ranges.h"

namespace planish {
namespace {

constexpr std::int64_t kCheckEvery = 10, kPatience = 20; // parameters.md, learned methods
constexpr double kOfficialFloor = .01;                   // truncation of the released code, diagonal.md 9.2

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

struct Options {
    bool clip = true, scale = true, shift = false, official = false, logScale = true;
};

/// What is learned: one log factor and one shift per tie set (or channel), two logits per share of every consumer.
struct State {
    std::vector<double> scale, shift; ///< scale: log s, or s itself with log_scale=off
    std::vector<std::vector<double>> high, low; ///< logits
};

class Omni {
public:
    Omni(const FitInput &input, Options options) : m_input(input), m_options(options) {}

    Expected<Rewrite> run()
    {
        start();
        auto loss = SearchLoss::create(m_input, SearchPart::Validation);
        if (!loss)
            return tl::make_unexpected(loss.error());
        const auto begun = std::chrono::steady_clock::now();
        auto trained = train(*loss);
        if (!trained)
            return trained;
        m_record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
        trained->training = m_record;
        trained->specs = m_input.specs;
        trained->fitted["best_step"] = m_record.bestStep;
        trained->notes.push_back("edge-local: the published method trains block by block");
        return trained;
    }

private:
    std::size_t channels() const { return m_input.edge->channels; }
    std::size_t setOf(std::size_t k) const { return m_input.ties.set.empty() ? k : std::size_t(m_input.ties.set[k]); }
    std::size_t setCount() const { return m_input.ties.set.empty() ? channels() : m_input.ties.count; }

    void start()
    {
        m_x = eigenMatrix(m_input.fitting.x());
        if (const std::int64_t wanted = m_input.params.integer("batch_rows"); wanted > 0 && m_x.rows() > wanted)
            m_x = Dense(m_x.topRows(wanted));
        for (const ConsumerWeights &consumer : m_input.consumers)
            m_w.push_back(eigenMatrix(*consumer.weight));
        for (const Dense &w : m_w)
            m_y.push_back(m_x * w.transpose());
        auto a = reducedOverTies(channelStatistic(*m_input.statistics, ChannelStatistic::AbsMax), m_input.ties, TieReduction::Max);
        const std::vector<ConsumerWeights> first{m_input.consumers.front()};
        auto w = reducedOverTies(weightMaxima(m_options.official ? first : m_input.consumers), m_input.ties, TieReduction::Max);
        std::int64_t dead = 0;
        const auto factors = smoothingFactors(a, w, m_input.params.real("alpha"), dead);
        m_state.scale.assign(setCount(), m_options.logScale ? 0.0 : 1.0);
        m_state.shift.assign(setCount(), 0.0);
        for (std::size_t k = 0; k < channels(); ++k) {
            if (m_options.scale)
                m_state.scale[setOf(k)] = m_options.logScale ? std::log(factors[k]) : factors[k];
            const auto &c = m_input.statistics->channel;
            if (m_options.shift)
                m_state.shift[setOf(k)] = (c.minimum[k] + c.maximum[k]) / 2;
        }
        for (const Dense &each : m_w) {
            const std::size_t shares = shareCount(m_input.specs.weight.grid, std::size_t(each.rows()), std::size_t(each.cols()));
            m_state.high.emplace_back(shares, m_input.params.real("init"));
            m_state.low.emplace_back(shares, m_input.params.real("init"));
        }
        m_record.optimizer = "adamw";
        m_record.schedule = "constant";
        m_record.objective = "layer error";
        m_record.init = "smoothquant";
        m_record.betas = {0.9, 0.999};
        m_record.lr = m_input.params.real("let_lr");
        m_record.steps = m_input.params.integer("steps");
        m_record.batchRows = m_x.rows();
        m_record.ste = true;
        m_record.detached = m_input.params.isWord("act_gradient", "detached");
    }

    Rewrite rewriteOf(const State &state) const
    {
        Rewrite rewrite;
        if (m_options.shift)
            for (std::size_t k = 0; k < channels(); ++k)
                rewrite.input.shift.push_back(state.shift[setOf(k)]);
        if (m_options.scale) {
            ScaleOp scale;
            for (std::size_t k = 0; k < channels(); ++k)
                scale.divisor.push_back(scaleAt(state, k));
            rewrite.input.operators.push_back({std::move(scale)});
        }
        for (std::size_t i = 0; m_options.clip && i < m_w.size(); ++i) {
            Clip clip{.target = Target::Weight, .kind = Clip::Kind::Multiplier, .lo = {}, .hi = {}, .consumer = i};
            for (std::size_t j = 0; j < state.high[i].size(); ++j) {
                clip.hi.push_back(sigmoid(state.high[i][j]));
                clip.lo.push_back(sigmoid(state.low[i][j]));
            }
            rewrite.clips.push_back(std::move(clip));
        }
        return rewrite;
    }

    double scaleAt(const State &state, std::size_t k) const
    {
        const double raw = state.scale[setOf(k)], s = m_options.logScale ? std::exp(raw) : std::max(raw, kOfficialFloor);
        return m_options.official ? std::max(s, kOfficialFloor) : s;
    }

    Expected<Dense> quantizedActivation(const Dense &x) const
    {
        if (m_input.specs.act.isNone())
            return x;
        NumberGrid grid = m_input.specs.act.grid;
        grid.timing = Timing::Dynamic;
        auto quantized = quantize(x, {.grid = grid});
        if (!quantized)
            return tl::make_unexpected(quantized.error());
        return downloaded(*quantized);
    }

    Expected<Quantized> quantize(const Dense &values, const QuantizeRequest &request) const
    {
        const MatrixD matrix = planishMatrix(values);
        auto resident = fromKernel(m_input.backend->upload(matrix.view()), m_input.edge->id.value);
        if (!resident)
            return tl::make_unexpected(resident.error());
        return fromKernel(m_input.backend->quantize(**resident, request), m_input.edge->id.value);
    }

    Expected<Dense> downloaded(const Quantized &quantized) const
    {
        auto matrix = fromKernel(m_input.backend->download(*quantized.reconstructed), m_input.edge->id.value);
        if (!matrix)
            return tl::make_unexpected(matrix.error());
        return eigenMatrix(*matrix);
    }

    /// Gradients of one step, in the order of State.
    struct Slopes {
        std::vector<double> logScale, shift;
        std::vector<std::vector<double>> high, low;
    };

    /// One consumer: its weights through the clips, the share of the loss, and what flows back.
    Expected<void> consumerStep(std::size_t i, const Dense &xq, const Eigen::VectorXd &s, const Eigen::VectorXd &c, Dense &toX, Slopes &slopes) const
    {
        const NumberGrid &grid = m_input.specs.weight.grid;
        const Dense w = m_w[i] * s.asDiagonal();
        const FixedRanges whole = shareRanges(grid, planishMatrix(w).view());
        FixedRanges ranges = whole;
        for (std::size_t j = 0; m_options.clip && j < ranges.size(); ++j)
            ranges[j] = {whole[j].lo * sigmoid(m_state.low[i][j]), whole[j].hi * sigmoid(m_state.high[i][j])};
        auto quantized = quantize(w, {.grid = grid, .ranges = &ranges});
        if (!quantized)
            return tl::make_unexpected(quantized.error());
        auto wq = downloaded(*quantized);
        if (!wq)
            return tl::make_unexpected(wq.error());
        Dense error = xq * wq->transpose() - m_y[i];
        if (m_options.shift)
            error.rowwise() += (m_w[i] * c).transpose();
        double outputs = 0;
        for (const Dense &each : m_w)
            outputs += double(each.rows());
        const double scale = 2.0 / (double(m_x.rows()) * outputs);
        toX += scale * (error * *wq);
        const Dense toW = scale * (error.transpose() * xq);
        if (m_options.shift)
            addShift(slopes, scale * error.colwise().sum().transpose(), m_w[i]);
        backThroughWeights(i, w, *wq, toW, whole, quantized->steps, s, slopes);
        return {};
    }

    void addShift(Slopes &slopes, const Eigen::VectorXd &toBias, const Dense &w) const
    {
        const Eigen::VectorXd toShift = w.transpose() * toBias;
        for (std::size_t k = 0; k < channels(); ++k)
            slopes.shift[setOf(k)] += toShift(Eigen::Index(k));
    }

    /// dwhat/dstep is (what - w)/step inside the grid and what/step where saturated; z carries no gradient, as in the released code.
    void backThroughWeights(std::size_t i, const Dense &w, const Dense &wq, const Dense &toW, const FixedRanges &whole, const std::vector<double> &steps,
                            const Eigen::VectorXd &s, Slopes &slopes) const
    {
        const NumberGrid &grid = m_input.specs.weight.grid;
        const std::size_t perRow = sharesPerRow(grid, channels());
        const std::size_t width = perRow > 1 ? grid.group : channels();
        const bool asym = isAsymmetric(grid.dialect);
        const int bits = bitsOf(grid.format);
        const double range = asym ? std::exp2(bits) - 1 : std::exp2(bits - 1) - 1;
        std::vector<double> toStep(steps.size(), 0.0);
        for (Eigen::Index n = 0; n < w.rows(); ++n) {
            for (Eigen::Index k = 0; k < w.cols(); ++k) {
                const std::size_t share = steps.size() == 1 ? 0 : std::size_t(n) * perRow + std::size_t(k) / width;
                const double e = wq(n, k) - w(n, k), step = steps[share];
                const bool saturated = std::abs(e) > 0.5 * step * (1 + 1e-9);
                toStep[share] += toW(n, k) * (saturated ? wq(n, k) : e) / step;
                if (!saturated)
                    slopes.logScale[setOf(std::size_t(k))] += toW(n, k) * m_w[i](n, k) * s(k);
            }
        }
        for (std::size_t j = 0; m_options.clip && j < steps.size(); ++j) {
            const double g = sigmoid(m_state.high[i][j]), b = sigmoid(m_state.low[i][j]);
            const double hi = whole[j].hi, lo = whole[j].lo;
            if (asym) {
                slopes.high[i][j] += toStep[j] * hi / range * g * (1 - g);
                slopes.low[i][j] -= toStep[j] * lo / range * b * (1 - b);
            } else if (std::abs(hi * g) >= std::abs(lo * b)) {
                slopes.high[i][j] += toStep[j] * std::abs(hi) / range * g * (1 - g);
            } else {
                slopes.low[i][j] += toStep[j] * std::abs(lo) / range * b * (1 - b);
            }
        }
    }

    Expected<Slopes> slopes() const
    {
        Eigen::VectorXd s = Eigen::VectorXd::Ones(Eigen::Index(channels())), c = Eigen::VectorXd::Zero(Eigen::Index(channels()));
        for (std::size_t k = 0; k < channels(); ++k) {
            if (m_options.scale)
                s(Eigen::Index(k)) = scaleAt(m_state, k);
            if (m_options.shift)
                c(Eigen::Index(k)) = m_state.shift[setOf(k)];
        }
        const Dense x = (m_x.rowwise() - c.transpose()) * s.cwiseInverse().asDiagonal();
        auto xq = quantizedActivation(x);
        if (!xq)
            return tl::make_unexpected(xq.error());
        Slopes slopes{std::vector<double>(setCount(), 0.0), std::vector<double>(setCount(), 0.0), m_state.high, m_state.low};
        for (auto *logits : {&slopes.high, &slopes.low})
            for (auto &each : *logits)
                std::ranges::fill(each, 0.0);
        Dense toX = Dense::Zero(x.rows(), x.cols());
        for (std::size_t i = 0; i < m_w.size(); ++i) {
            if (auto done = consumerStep(i, *xq, s, c, toX, slopes); !done)
                return tl::make_unexpected(done.error());
        }
        if (m_input.params.isWord("act_gradient", "full"))
            throughActivationStep(x, *xq, toX);
        for (std::size_t k = 0; k < channels(); ++k) {
            const auto column = toX.col(Eigen::Index(k));
            slopes.logScale[setOf(k)] -= column.dot(x.col(Eigen::Index(k)));
            slopes.shift[setOf(k)] -= column.sum() / s(Eigen::Index(k));
        }
        for (std::size_t j = 0; !m_options.logScale && j < slopes.logScale.size(); ++j)
            slopes.logScale[j] /= std::max(m_state.scale[j], kOfficialFloor);
        return slopes;
    }

    /// act_gradient=full: the step of a row depends on its extremes, so they receive sum toX (xhat - x) / (range of the row).
    void throughActivationStep(const Dense &x, const Dense &xq, Dense &toX) const
    {
        const NumberGrid &grid = m_input.specs.act.grid;
        if (grid.format == NumberFormat::None || grid.sharing != Sharing::Row)
            return;
        for (Eigen::Index m = 0; m < x.rows(); ++m) {
            const double spread = toX.row(m).dot(xq.row(m) - x.row(m));
            Eigen::Index top = 0, bottom = 0;
            if (isAsymmetric(grid.dialect)) {
                const double range = x.row(m).maxCoeff(&top) - x.row(m).minCoeff(&bottom);
                if (range > 0.0) {
                    toX(m, top) += spread / range;
                    toX(m, bottom) -= spread / range;
                }
            } else if (const double largest = x.row(m).cwiseAbs().maxCoeff(&top); largest > 0.0) {
                toX(m, top) += spread / x(m, top);
            }
        }
    }

    Expected<Rewrite> train(SearchLoss &loss)
    {
        Rewrite best;
        auto lowest = loss(best);
        if (!lowest)
            return tl::make_unexpected(lowest.error());
        best.fitted["identity"] = true;
        m_record.startObjective = *lowest;
        Adam scale(setCount()), shift(setCount());
        std::vector<Adam> high, low;
        for (const auto &each : m_state.high) {
            high.emplace_back(each.size());
            low.emplace_back(each.size());
        }
        std::int64_t since = 0;
        for (std::int64_t step = 0; step <= m_record.steps && since < kPatience; ++step) {
            if (step % kCheckEvery == 0 || step == m_record.steps) {
                Rewrite trial = rewriteOf(m_state);
                auto value = loss(trial);
                if (!value)
                    return tl::make_unexpected(value.error());
                m_record.curve.push_back(*value);
                since = *value < *lowest ? 0 : since + 1;
                if (*value < *lowest) {
                    lowest = value;
                    best = std::move(trial);
                    m_record.bestStep = step;
                }
            }
            if (!report(step, *lowest) || step == m_record.steps)
                break;
            auto g = slopes();
            if (!g)
                return tl::make_unexpected(g.error());
            if (m_options.scale)
                scale.step(m_state.scale, g->logScale, m_input.params.real("let_lr"));
            if (m_options.shift)
                shift.step(m_state.shift, g->shift, m_input.params.real("let_lr"));
            for (std::size_t i = 0; m_options.clip && i < high.size(); ++i) {
                high[i].step(m_state.high[i], g->high[i], m_input.params.real("lwc_lr"));
                low[i].step(m_state.low[i], g->low[i], m_input.params.real("lwc_lr"));
            }
        }
        m_record.finalObjective = *lowest;
        return best;
    }

    bool report(std::int64_t step, double objective) const
    {
        if (m_input.progress)
            m_input.progress({.stage = "omniquant", .done = double(step), .total = double(m_record.steps), .unit = "steps", .objective = objective, .hasObjective = true});
        return !m_input.stop.stop_requested();
    }

    const FitInput &m_input;
    Options m_options;
    Dense m_x;
    std::vector<Dense> m_w, m_y;
    State m_state;
    TrainingRecord m_record;
};

bool biasCanAbsorb(const Producer &producer)
{
    const auto *norm = std::get_if<NormProducer>(&producer);
    return norm && norm->hasBias;
}

Expected<Rewrite> fitOmniquant(const FitInput &input)
{
    const QuantSpec &weight = input.specs.weight;
    if (!isInteger(weight.grid.format) || weight.grid.sharing == Sharing::Channel)
        return refusal(input.edge->id.value, "omniquant learns the ranges of integer weights", "an integer --weight with row, group or tensor sharing", "specs");
    Options options;
    options.clip = input.params.isWord("lwc", "on");
    options.scale = input.params.isWord("let", "on") && !input.specs.act.isNone();
    options.shift = options.scale && (input.params.isWord("shift", "on") || (input.params.isWord("shift", "auto") && biasCanAbsorb(input.edge->producer)));
    options.official = input.params.isWord("variant", "official");
    options.logScale = input.params.isWord("log_scale", "on");
    if (!options.clip && !options.scale)
        return refusal(input.edge->id.value, "nothing to learn: lwc is off and let is off or has no activation spec", "lwc=on, or let=on with --act", "specs");
    return Omni(input, options).run();
}

/// Three products a step, at about 20 GFLOP/s in double.
double estimateOmniquant(std::size_t channels, std::size_t outputs, std::size_t rows, const Params &params)
{
    return double(params.integer("steps")) * 6.0 * double(rows) * double(channels) * double(outputs) / 2e10;
}

} // namespace

MethodRow omniquantRow()
{
    return {.key = "omniquant",
            .label = "OmniQuant (LWC and LET, edge-local)",
            .source = "arXiv 2308.13137; OpenGVLab/OmniQuant",
            .needs = {Need::Activations, Need::Weights, Need::Specs},
            .mustBeLast = true,
            .learned = true,
            .params = {enumParam("lwc", {"on", "off"}, "learned weight clipping"), enumParam("let", {"on", "off"}, "learned scale (and shift); off when --act is none"),
                       enumParam("shift", {"auto", "on", "off"}, "auto: on behind a norm with a bias"), realParam("alpha", 0, 1, 0.05, "0.5", "SmoothQuant strength the scale starts from"),
                       realParam("lwc_lr", 1e-6, 1, 1e-3, "1e-2", "AdamW, no decay"), realParam("let_lr", 1e-6, 1, 1e-3, "5e-3", "AdamW, no decay"),
                       realParam("init", -10, 10, 0.5, "4", "logits of the clips"), integerParam("steps", 1, 10000, "200", "(ours)"),
                       integerParam("batch_rows", 0, 1 << 20, "2048", "0: all"), enumParam("log_scale", {"on", "off"}, "learn log s, which keeps s positive"),
                       enumParam("act_gradient", {"detached", "full"}, "gradient of the activation step"),
                       enumParam("variant", {"planish", "official"}, "official: truncation at .01, w of one consumer only"), tiesParam(), searchRowsParam()},
            .fit = fitOmniquant,
            .estimateSeconds = estimateOmniquant};
}

} // namespace planish
