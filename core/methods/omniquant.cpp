// OmniQuant (arXiv 2308.13137; OpenGVLab/OmniQuant) on one edge: learned weight clipping (LWC) and a learned diagonal scale and shift
// (LET), by AdamW on the layer error through the quantizers. diagonal.md 9.
#include <chrono>

#include "core/methods/adam.h"
#include "core/methods/method_rows.h"
#include "core/methods/omniquant_layer.h"
#include "core/methods/param_rows.h"
#include "core/methods/search_loss.h"

namespace planish {
namespace {

constexpr std::int64_t kCheckEvery = 10, kPatience = 20; // parameters.md, learned methods

/// One Adam per kind of number, each with its rate.
class OmniOptimizer {
public:
    OmniOptimizer(const OmniState &state, const OmniOptions &options, const Params &params)
        : m_options(options), m_letRate(params.real("let_lr")), m_lwcRate(params.real("lwc_lr")), m_scale(state.scale.size()), m_shift(state.shift.size())
    {
        for (const ClipLogits &clip : state.clips) {
            m_high.emplace_back(clip.high.size());
            m_low.emplace_back(clip.low.size());
        }
    }

    void step(OmniState &state, const OmniState &slopes)
    {
        if (m_options.scale)
            m_scale.step(state.scale, slopes.scale, m_letRate);
        if (m_options.shift)
            m_shift.step(state.shift, slopes.shift, m_letRate);
        for (std::size_t i = 0; m_options.clip && i < m_high.size(); ++i) {
            m_high[i].step(state.clips[i].high, slopes.clips[i].high, m_lwcRate);
            m_low[i].step(state.clips[i].low, slopes.clips[i].low, m_lwcRate);
        }
    }

private:
    OmniOptions m_options;
    double m_letRate, m_lwcRate;
    Adam m_scale, m_shift;
    std::vector<Adam> m_high, m_low;
};

class Training {
public:
    Training(const FitInput &input, OmniOptions options, SearchLoss &loss)
        : m_input(input), m_options(options), m_loss(loss), m_layer(input, loss.fitRows().x(), options)
    {
        const auto wanted = static_cast<std::size_t>(input.params.integer("batch_rows"));
        m_batch = wanted == 0 ? m_layer.rows() : std::min(wanted, m_layer.rows());
        m_record.optimizer = "adamw";
        m_record.schedule = "constant";
        m_record.objective = "layer error";
        m_record.init = "smoothquant";
        m_record.betas = {0.9, 0.999};
        m_record.lr = input.params.real(options.scale ? "let_lr" : "lwc_lr");
        m_record.steps = input.params.integer("steps");
        m_record.batchRows = static_cast<std::int64_t>(m_batch);
        m_record.ste = true;
        m_record.detached = !options.activationStep;
    }

    Expected<Rewrite> run()
    {
        const auto begun = std::chrono::steady_clock::now();
        auto lowest = m_loss(m_best);
        if (!lowest)
            return tl::make_unexpected(lowest.error());
        m_lowest = m_record.startObjective = *lowest;
        m_best.fitted["identity"] = true;
        std::int64_t dead = 0;
        OmniState state = m_layer.start(dead);
        if (auto done = learn(state); !done)
            return tl::make_unexpected(done.error());
        m_record.finalObjective = m_lowest;
        m_record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
        if (m_options.scale && dead > 0)
            m_best.clamps["dead_channels"] = dead;
        m_best.fitted["best_step"] = m_record.bestStep;
        m_best.training = std::move(m_record);
        m_best.specs = m_input.specs;
        m_best.notes.push_back("edge-local: the published method trains block by block");
        return std::move(m_best);
    }

private:
    /// Steps until the end, a stop, or no improvement for long; the best state so far is kept in every case.
    Expected<void> learn(OmniState &state)
    {
        OmniOptimizer optimizer(state, m_options, m_input.params);
        std::int64_t since = 0;
        for (std::int64_t step = 0; step <= m_record.steps && since < kPatience; ++step) {
            m_layer.truncate(state);
            if (step % kCheckEvery == 0 || step == m_record.steps) {
                auto better = check(state, step);
                if (!better && m_input.stop.stop_requested() && m_record.bestStep > 0)
                    break;
                if (!better)
                    return tl::make_unexpected(better.error());
                since = *better ? 0 : since + 1;
            }
            if (!report(step) || step == m_record.steps)
                break;
            const std::size_t begin = m_batch * (static_cast<std::size_t>(step) % batches());
            auto slopes = m_layer.slopes(state, begin, std::min(m_batch, m_layer.rows() - begin));
            if (!slopes)
                return tl::make_unexpected(slopes.error());
            optimizer.step(state, *slopes);
        }
        return {};
    }

    Expected<bool> check(const OmniState &state, std::int64_t step)
    {
        Rewrite trial = m_layer.rewriteOf(state);
        auto value = m_loss(trial);
        if (!value)
            return tl::make_unexpected(value.error());
        m_record.curve.push_back(*value);
        if (!(*value < m_lowest))
            return false;
        m_lowest = *value;
        m_best = std::move(trial);
        m_record.bestStep = step;
        return true;
    }

    bool report(std::int64_t step) const
    {
        if (m_input.progress)
            m_input.progress({.stage = "omniquant", .done = double(step), .total = double(m_record.steps), .unit = "steps", .objective = m_lowest, .hasObjective = true});
        return !m_input.stop.stop_requested();
    }

    std::size_t batches() const { return (m_layer.rows() + m_batch - 1) / m_batch; }

    const FitInput &m_input;
    OmniOptions m_options;
    SearchLoss &m_loss;
    OmniLayer m_layer;
    std::size_t m_batch = 0;
    Rewrite m_best;
    double m_lowest = 0;
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
    OmniOptions options;
    options.clip = input.params.isWord("lwc", "on");
    options.scale = input.params.isWord("let", "on") && !input.specs.act.isNone();
    options.shift = options.scale && (input.params.isWord("shift", "on") || (input.params.isWord("shift", "auto") && biasCanAbsorb(input.edge->producer)));
    options.official = input.params.isWord("variant", "official");
    options.logScale = input.params.isWord("log_scale", "on");
    options.activationStep = input.params.isWord("act_gradient", "full");
    if (!options.clip && !options.scale)
        return refusal(input.edge->id.value, "nothing to learn: lwc is off and let is off or has no activation spec", "lwc=on, or let=on with --act", "specs");
    auto loss = SearchLoss::create(input, searchPart(input.params, SearchPart::Validation));
    if (!loss)
        return tl::make_unexpected(loss.error());
    return Training(input, options, *loss).run();
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
