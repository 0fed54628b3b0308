// FlatQuant (arXiv 2410.09426; ruikangliu/FlatQuant) on one edge: X' = (X / s) (P1 (x) P2) with invertible factors, channel scale and
// clips learned on the layer error. rotation.md 6.
#include <algorithm>
#include <cmath>

#include "core/methods/channel_factors.h"
#include "core/methods/kronecker_fit.h"
#include "core/methods/learned_steps.h"
#include "core/methods/method_rows.h"
#include "core/methods/param_rows.h"
#include "core/methods/rotation_parts.h"
#include "core/methods/straight_through.h"

namespace planish {
namespace {

using namespace learned;

constexpr double kFirstLogit = 4.0, kScaleFloor = 1e-5, kLastRate = 1e-3; // rotation.md 6.3, 6.5
constexpr std::size_t kLargestPrime = 256, kLargestFactor = 4096;         // rotation.md 6.7; no dense factor above 4096

struct State {
    LearnedFactor first, second;
    std::vector<double> logMultiplier; ///< ln of the paper's s, one per tie set
    LearnedClips clips;
    double kappa = 1;
};

class Flat {
public:
    Flat(const FitInput &input, std::size_t k1, std::size_t k2) : m_input(input), m_k1(k1), m_k2(k2), m_error(input) {}

    Expected<Rewrite> run()
    {
        const SearchPart part = searchPart(m_input.params, SearchPart::Validation);
        auto loss = SearchLoss::create(m_input, part);
        if (!loss)
            return tl::make_unexpected(loss.error());
        m_w = eigenMatrix(stackedWeights(m_input.consumers));
        m_batches = learnedBatches(m_input, part, m_w);
        auto identity = (*loss)(Rewrite{});
        if (!identity)
            return tl::make_unexpected(identity.error());
        State start = startState();
        prepareAdams(start);
        const LearnedRun<State> run{[&](State &state, std::int64_t step) { return advance(state, step); },
                                    [&](const State &state) { return (*loss)(rewriteOf(state)); }};
        TrainingRecord record = emptyRecord();
        auto best = learn(m_input, {"flatquant"}, std::move(start), record.steps, run, record);
        if (!best)
            return tl::make_unexpected(best.error());
        return finished(*best, record, record.finalObjective < *identity);
    }

private:
    bool isOn(const char *name) const { return m_input.params.isWord(name, "on"); }
    std::size_t channels() const { return m_input.edge->channels; }
    std::size_t setOf(std::size_t k) const { return m_input.ties.set.empty() ? k : std::size_t(m_input.ties.set[k]); }
    std::size_t setCount() const { return m_input.ties.set.empty() ? channels() : m_input.ties.count; }

    State startState()
    {
        RandomStream stream(m_input.seed, "init" + m_input.purposeSuffix, m_input.streamId);
        const FactorForm form = m_input.params.isWord("form", "svd") ? FactorForm::Svd : FactorForm::Direct;
        LearnedFactor first(form, m_k1, stream);
        LearnedFactor second(form, m_k2, stream);
        State state{std::move(first), std::move(second), std::vector<double>(setCount(), 0.0), m_error.startClips(isOn("clip"), isOn("clip"), kFirstLogit), 1};
        if (!isOn("diagonal"))
            return state;
        const auto a = reducedOverTies(channelStatistic(*m_input.statistics, ChannelStatistic::AbsMax), m_input.ties, TieReduction::Max);
        const auto w = reducedOverTies(weightMaxima(m_input.consumers), m_input.ties, TieReduction::Max);
        const auto divisors = smoothingFactors(a, w, m_input.params.real("alpha"), m_dead);
        for (std::size_t k = 0; k < channels(); ++k) {
            m_floored += 1 / divisors[k] < kScaleFloor;
            state.logMultiplier[setOf(k)] = std::log(std::max(1 / divisors[k], kScaleFloor));
        }
        return state;
    }

    void prepareAdams(const State &state)
    {
        const LearnedClips &clips = state.clips;
        m_scaleAdam = Adam(state.logMultiplier.size());
        m_clipAdams = {Adam(clips.activation.low.size()), Adam(clips.activation.high.size()), Adam(clips.weights.low.size()), Adam(clips.weights.high.size())};
    }

    TrainingRecord emptyRecord() const
    {
        TrainingRecord record{.optimizer = "adam", .schedule = "cosine to 1e-3", .objective = "log layer error", .init = "haar", .betas = {0.9, 0.999}};
        record.lr = m_input.params.real("lr");
        record.steps = m_input.params.integer("steps");
        record.batchRows = m_batches.front().x.rows();
        record.ste = record.detached = true;
        return record;
    }

    Eigen::VectorXd multipliers(const State &state) const
    {
        Eigen::VectorXd s = Eigen::VectorXd::Ones(Eigen::Index(channels()));
        for (std::size_t k = 0; k < channels(); ++k)
            s(Eigen::Index(k)) = std::exp(state.logMultiplier[setOf(k)]);
        return s;
    }

    Expected<bool> advance(State &state, std::int64_t step)
    {
        const LearnedBatch &batch = m_batches[std::size_t(step) % m_batches.size()];
        const Eigen::VectorXd s = multipliers(state);
        const Dense x = batch.x * s.asDiagonal(), w = m_w * s.cwiseInverse().asDiagonal();
        const Factor &first = state.first.factor(), &second = state.second.factor();
        auto slopes = m_error(kroneckerActivations(x, first, second), kroneckerWeights(w, first, second), batch.y, state.clips);
        if (!slopes)
            return tl::make_unexpected(slopes.error());
        if (!(slopes->value > 0.0) || !std::isfinite(slopes->value))
            return false;
        // The loss over its own detached value: slopes of ln, so that the rate does not depend on the scale of Y (rotation.md 6.5).
        const double unit = 1 / slopes->value;
        KroneckerSlopes back = kroneckerSlopes(x, w, first, second, unit * slopes->toX, unit * slopes->toW);
        addPenalty(first, second, back);
        const double decay = cosineDecay(step, m_input.params.integer("steps"), kLastRate);
        if (isOn("diagonal"))
            stepScale(state, x.cwiseProduct(back.toX).colwise().sum() - w.cwiseProduct(back.toW).colwise().sum(), decay);
        stepClips(state.clips, slopes->clips, unit, decay);
        return stepFactors(state, back, decay * m_input.params.real("lr"));
    }

    /// lambda (||P||^2 + ||P^-1||^2) of the whole P = P1 (x) P2.
    void addPenalty(const Factor &first, const Factor &second, KroneckerSlopes &back) const
    {
        const double lambda = m_input.params.real("penalty");
        if (lambda == 0.0)
            return;
        const auto slope = [&](const Factor &own, const Factor &other) {
            const Dense inverse = own.inverse.transpose() * own.inverse * own.inverse.transpose();
            return Dense(2 * lambda * (other.matrix.squaredNorm() * own.matrix - other.inverse.squaredNorm() * inverse));
        };
        back.first += slope(first, second);
        back.second += slope(second, first);
    }

    void stepScale(State &state, const Eigen::RowVectorXd &perChannel, double decay)
    {
        std::vector<double> slope(setCount(), 0.0);
        for (std::size_t k = 0; k < channels(); ++k)
            slope[setOf(k)] += perChannel(Eigen::Index(k));
        m_scaleAdam.step(state.logMultiplier, slope, decay * m_input.params.real("lr"));
    }

    void stepClips(LearnedClips &clips, LearnedClips slopes, double unit, double decay)
    {
        const double rate = decay * m_input.params.real("clip_lr");
        std::vector<double> *values[] = {&clips.activation.low, &clips.activation.high, &clips.weights.low, &clips.weights.high};
        std::vector<double> *along[] = {&slopes.activation.low, &slopes.activation.high, &slopes.weights.low, &slopes.weights.high};
        for (std::size_t i = 0; i < m_clipAdams.size(); ++i) {
            for (double &slope : *along[i])
                slope *= unit;
            m_clipAdams[i].step(*values[i], *along[i], rate);
        }
    }

    /// Both factors, then the limit on kappa. Factors that leave their manifold by more than 1e-8 are turned back.
    Expected<bool> stepFactors(State &state, const KroneckerSlopes &back, double rate)
    {
        if (!state.first.step(back.first, rate) || !state.second.step(back.second, rate))
            return false;
        for (LearnedFactor *factor : {&state.first, &state.second})
            if (factor->residual() > 1e-8)
                factor->tidy();
        state.kappa = limitConditioning(state.first, state.second, m_input.params.real("kappa_limit"));
        return true;
    }

    Rewrite rewriteOf(const State &state) const
    {
        Rewrite rewrite;
        if (isOn("diagonal")) {
            ScaleOp scale;
            for (std::size_t k = 0; k < channels(); ++k)
                scale.divisor.push_back(std::exp(-state.logMultiplier[setOf(k)]));
            rewrite.input.operators.push_back({std::move(scale)});
        }
        const auto dense = [](const Factor &factor) {
            return std::make_shared<const Operator>(Operator{DenseOp{planishMatrix(factor.matrix), planishMatrix(factor.inverse), false}});
        };
        rewrite.input.operators.push_back({KroneckerOp{dense(state.first.factor()), dense(state.second.factor())}});
        rewrite.clips = m_error.clipsOf(state.clips);
        return rewrite;
    }

    Rewrite finished(const State &best, const TrainingRecord &record, bool beatsIdentity) const
    {
        Rewrite rewrite = beatsIdentity ? rewriteOf(best) : Rewrite{};
        rewrite.fitted["identity"] = !beatsIdentity;
        rewrite.fitted["k1"] = std::int64_t(m_k1);
        rewrite.fitted["k2"] = std::int64_t(m_k2);
        rewrite.fitted["best_step"] = record.bestStep;
        rewrite.fitted["kappa"] = best.kappa;
        rewrite.fitted["factor_residual"] = std::max(best.first.residual(), best.second.residual());
        if (m_dead > 0)
            rewrite.clamps["dead_channels"] = m_dead;
        if (m_floored > 0)
            rewrite.clamps["scale_floor"] = m_floored;
        rewrite.training = record;
        rewrite.specs = m_input.specs;
        if (isOn("clip") && best.clips.activation.isEmpty() && best.clips.weights.isEmpty())
            rewrite.notes.push_back("clip: these formats have no range to learn");
        rewrite.notes.push_back("edge-local proxy: the published method trains on the output of a whole block");
        return rewrite;
    }

    const FitInput &m_input;
    std::size_t m_k1, m_k2;
    LayerError m_error;
    Dense m_w;
    std::vector<LearnedBatch> m_batches;
    Adam m_scaleAdam{0};
    std::vector<Adam> m_clipAdams;
    std::int64_t m_dead = 0, m_floored = 0;
};

std::string divisorsOf(std::size_t n)
{
    std::string text;
    for (std::size_t d = 1; d <= n; ++d)
        if (n % d == 0)
            text += (text.empty() ? "" : ", ") + std::to_string(d);
    return text;
}

/// Fermat's search of the released code: the most balanced pair of equal parity; none for n = 2 mod 4, where it does not end.
std::optional<std::size_t> officialFirst(std::size_t n)
{
    if (n % 4 == 2)
        return std::nullopt;
    auto a = std::size_t(std::ceil(std::sqrt(double(n))));
    for (;; ++a) {
        const std::size_t square = a * a - n;
        const auto b = std::size_t(std::llround(std::sqrt(double(square))));
        if (b * b == square)
            return a - b;
    }
}

std::size_t balancedFirst(std::size_t n)
{
    std::size_t best = 1;
    for (std::size_t d = 1; d * d <= n; ++d)
        best = n % d == 0 ? d : best;
    return best;
}

Expected<std::size_t> firstFactor(const FitInput &input)
{
    const std::size_t channels = input.edge->channels;
    const std::string &edge = input.edge->id.value, width = std::to_string(channels);
    const auto asked = std::size_t(input.params.integer("k1"));
    std::size_t k1 = asked;
    if (asked > 0 && channels % asked != 0)
        return refusal(edge, "k1=" + std::to_string(asked) + " does not divide " + width + " channels", "one of " + divisorsOf(channels), "divisibility");
    if (asked == 0 && input.params.isWord("factors", "official")) {
        const auto official = officialFirst(channels);
        if (!official)
            return refusal(edge, "the published search finds no pair for " + width + " channels, which are 2 mod 4", "factors=balanced", "divisibility");
        k1 = *official;
    } else if (asked == 0) {
        k1 = balancedFirst(channels);
    }
    if ((k1 == 1 || k1 == channels) && channels > kLargestPrime)
        return refusal(edge, width + " channels split into 1 x " + width + " only, a dense matrix",
                       "a width with two factors, or a prime up to " + std::to_string(kLargestPrime), "divisibility");
    if (const std::size_t larger = std::max(k1, channels / k1); larger > kLargestFactor)
        return refusal(edge, "the factor of " + std::to_string(larger) + " channels is too large to learn", "factors of at most " + std::to_string(kLargestFactor),
                       "divisibility");
    return k1;
}

Expected<Rewrite> fitFlatquant(const FitInput &input)
{
    if (input.specs.act.isNone() && input.specs.weight.isNone())
        return refusal(input.edge->id.value, "nothing to learn: neither side is quantized", "--act or --weight", "specs");
    auto k1 = firstFactor(input);
    if (!k1)
        return tl::make_unexpected(k1.error());
    return bestSeed(input, [&](std::uint64_t seed) {
        FitInput seeded = input;
        seeded.seed = seed;
        return Flat(seeded, *k1, input.edge->channels / *k1).run();
    });
}

/// Three products of the layer error and eight passes through the factors a step, at about 20 GFLOP/s in double.
double estimateFlatquant(std::size_t channels, std::size_t outputs, std::size_t rows, const Params &params)
{
    const auto batch = std::size_t(params.integer("batch_rows"));
    const double m = double(batch > 0 ? std::min(batch, rows) : rows), n = double(outputs), k = double(channels), sides = 2 * std::sqrt(k);
    return double(params.integer("seeds") * params.integer("steps")) * (6 * m * n * k + 8 * (m + n) * k * sides + 40 * (m + n) * k) / 2e10;
}

} // namespace

MethodRow flatquantRow()
{
    return {.key = "flatquant",
            .label = "FlatQuant (learned Kronecker, edge-local)",
            .source = "arXiv 2410.09426; ruikangliu/FlatQuant",
            .needs = {Need::Activations, Need::Weights, Need::Specs},
            .mustBeLast = true,
            .learned = true,
            .params = withLoopParams({integerParam("k1", 0, 1 << 20, "0", "channels of the first factor, k2 = K / k1; 0: by factors"),
                                      enumParam("factors", {"balanced", "official"}, "most balanced divisors, or the published search for a pair of equal parity"),
                                      enumParam("form", {"svd", "direct"}, "U diag(e^r) V^T with U, V rotations, or free entries with an inverse each step"),
                                      enumParam("diagonal", {"on", "off"}, "learned channel scale in front"), enumParam("clip", {"on", "off"}, "learned clips of both sides"),
                                      realParam("alpha", 0, 1, 0.05, "0.3", "smoothing strength the scale starts from"),
                                      realParam("lr", 1e-6, 1, 1e-3, "5e-3", "of factors and scale; decays by cosine to 1e-3 of it"),
                                      realParam("clip_lr", 1e-6, 1, 1e-2, "5e-2", "of the clips"), integerParam("steps", 1, 10000, "300", "(ours)"),
                                      realParam("kappa_limit", 1, 1e4, 10, "100", "largest condition number of P1 (x) P2"),
                                      realParam("penalty", 0, 1, 1e-6, "0", "weight of ||P||^2 + ||P^-1||^2"), seedsParam(), tiesParam(), searchRowsParam()}),
            .fit = fitFlatquant,
            .estimateSeconds = estimateFlatquant};
}

} // namespace planish
