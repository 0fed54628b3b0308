// SpinQuant (arXiv 2405.16406; facebookresearch/SpinQuant) on one edge: a rotation learned on the orthogonal manifold. The published
// loss is the network's; here an edge-local proxy (KurTail, DartQuant and PSOT by objective). rotation.md 5.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>

#include <Eigen/Dense>

#include "core/methods/dense.h"
#include "core/methods/kernel_result.h"
#include "core/methods/method_rows.h"
#include "core/methods/norm_gain.h"
#include "core/methods/param_rows.h"
#include "core/methods/rotation_objectives.h"
#include "core/methods/rotation_parts.h"
#include "core/methods/search_loss.h"
#include "core/transform/hadamard_orders.h"
#include "core/transform/random_orthogonal.h"
#include "core/transform/random_stream.h"

namespace planish {
namespace {

constexpr std::size_t kLargestFull = 4096, kDefaultBlock = 512; // rotation.md 5.4
constexpr std::int64_t kCheckEvery = 10, kPatience = 20;       // parameters.md, learned methods
constexpr double kArmijo = 1e-4;
constexpr int kHalvings = 10;

learned::ObjectiveOptions objectiveOf(const Params &params)
{
    const std::pair<const char *, learned::Objective> names[] = {{"l4", learned::Objective::L4},           {"lp", learned::Objective::Lp},
                                                                 {"kurtosis", learned::Objective::Kurtosis}, {"softmax", learned::Objective::Softmax},
                                                                 {"whip", learned::Objective::Whip},       {"peak", learned::Objective::Peak}};
    learned::ObjectiveOptions options{learned::Objective::L4, params.real("p"), params.real("temperature"), params.real("beta")};
    for (const auto &[name, kind] : names)
        if (params.isWord("objective", name))
            options.kind = kind;
    return options;
}

/// The layer error with both quantizers, straight through: f and gradient of one full-width rotation.
class LayerError {
public:
    LayerError(const FitInput &input, const MatrixD &x, const MatrixD &w) : m_input(input), m_x(eigenMatrix(x)), m_w(eigenMatrix(w)), m_y(m_x * m_w.transpose()) {}

    Expected<double> operator()(const Dense &rotation, Dense *gradient) const
    {
        auto z = quantized(m_x * rotation, m_input.specs.act);
        auto v = quantized(m_w * rotation, m_input.specs.weight);
        if (!z || !v)
            return tl::make_unexpected(z ? v.error() : z.error());
        const Dense error = *z * v->transpose() - m_y;
        const double scale = 1.0 / double(m_y.size());
        if (gradient)
            *gradient = 2 * scale * (m_x.transpose() * (error * *v) + m_w.transpose() * (error.transpose() * *z));
        return error.squaredNorm() * scale;
    }

private:
    Expected<Dense> quantized(const Dense &values, const QuantSpec &spec) const
    {
        if (spec.isNone())
            return values;
        NumberGrid grid = spec.grid;
        grid.timing = Timing::Dynamic;
        const MatrixD matrix = planishMatrix(values);
        auto resident = fromKernel(m_input.backend->upload(matrix.view()), m_input.edge->id.value);
        if (!resident)
            return tl::make_unexpected(resident.error());
        auto result = fromKernel(m_input.backend->quantize(**resident, {.grid = grid}), m_input.edge->id.value);
        if (!result)
            return tl::make_unexpected(result.error());
        auto xhat = fromKernel(m_input.backend->download(*result->reconstructed), m_input.edge->id.value);
        if (!xhat)
            return tl::make_unexpected(xhat.error());
        return eigenMatrix(*xhat);
    }

    const FitInput &m_input;
    Dense m_x, m_w, m_y;
};

/// What is minimised on one block of channels, on the fitting rows and on the validation rows.
struct Problem {
    Dense fitX, validX, w;
    learned::ObjectiveOptions options;
    bool useWeights = true;
    const LayerError *layer = nullptr, *layerValid = nullptr;

    Expected<double> value(const Dense &r, bool validation, Dense *gradient) const
    {
        if (layer)
            return (validation ? *layerValid : *layer)(r, gradient);
        Dense more;
        double f = learned::objectiveValue(validation ? validX : fitX, r, options, gradient);
        if (useWeights) {
            f += learned::objectiveValue(w, r, options, gradient ? &more : nullptr);
            if (gradient)
                *gradient += more;
        }
        return f;
    }
};

/// One step of the released optimizer (five fixed-point iterations), for comparison only. rotation.md 5.2.
Dense officialStep(const Dense &r, const Dense &g, double lr)
{
    Dense u = r;
    for (Eigen::Index i = 0; i < u.rows(); ++i)
        u.row(i) /= u.row(i).norm() + 1e-8;
    const Dense v = -g.transpose(), mx = v * u, half = mx - 0.5 * u.transpose() * (u * mx), skew = half - half.transpose();
    const double alpha = std::min(1.0 / (skew.cwiseAbs().colwise().sum().maxCoeff() + 1e-8), lr);
    const Dense x = u.transpose();
    Dense y = x + alpha * v;
    for (int i = 0; i < 5; ++i)
        y = x + alpha / 2 * (skew * (x + y));
    return y.transpose();
}

class Learner {
public:
    Learner(const FitInput &input, const Problem &problem, TrainingRecord &record, std::size_t done, std::size_t total)
        : m_input(input), m_problem(problem), m_record(record), m_done(done), m_total(total)
    {
    }

    Expected<Dense> run(Dense r, std::int64_t steps)
    {
        auto start = m_problem.value(r, true, nullptr);
        if (!start)
            return tl::make_unexpected(start.error());
        m_record.startObjective += *start;
        Dense best = r;
        double lowest = *start;
        std::int64_t since = 0;
        for (std::int64_t step = 1; step <= steps; ++step) {
            // A cancelled fit keeps its best state so far.
            if (!report(step, steps, lowest))
                break;
            auto moved = advance(r, step, steps);
            if (!moved)
                return tl::make_unexpected(moved.error());
            if (!*moved)
                break;
            if (step % kCheckEvery != 0 && step != steps)
                continue;
            if (m_input.params.isWord("optimizer", "cayley") && learned::orthogonalityResidual(r) > 1e-8)
                r = learned::reorthogonalised(r);
            auto now = m_problem.value(r, true, nullptr);
            if (!now)
                return tl::make_unexpected(now.error());
            m_record.curve.push_back(*now);
            since = *now < lowest ? 0 : since + 1;
            if (*now < lowest) {
                lowest = *now;
                best = r;
                m_record.bestStep = std::max(m_record.bestStep, step);
            }
            if (since >= kPatience)
                break;
        }
        m_record.finalObjective += lowest;
        return m_input.params.isWord("optimizer", "official") ? learned::reorthogonalised(best) : best;
    }

private:
    bool report(std::int64_t step, std::int64_t steps, double objective)
    {
        if (m_input.progress) {
            const double all = double(m_total) * double(steps), now = double(m_done) * double(steps) + double(step);
            m_input.progress({.stage = "spinquant", .done = now, .total = all, .unit = "steps", .objective = objective, .hasObjective = true});
        }
        return !m_input.stop.stop_requested();
    }

    /// One descent step; false when no smaller objective was found.
    Expected<bool> advance(Dense &r, std::int64_t step, std::int64_t steps)
    {
        Dense g;
        auto f = m_problem.value(r, false, &g);
        if (!f)
            return tl::make_unexpected(f.error());
        const double lr = m_input.params.real("lr") * 0.5 * (1 + std::cos(std::numbers::pi * double(step - 1) / double(steps)));
        if (m_input.params.isWord("optimizer", "official")) {
            r = officialStep(r, g, lr);
            return true;
        }
        const Dense skew = g * r.transpose() - r * g.transpose();
        const double size = skew.cwiseAbs().colwise().sum().maxCoeff();
        if (size == 0.0)
            return false;
        double t = std::min(lr, 2.0 / size);
        for (int halving = 0; halving <= kHalvings; ++halving, t /= 2) {
            const Dense trial = learned::cayleyStep(r, skew, t);
            auto value = m_problem.value(trial, false, nullptr);
            if (!value)
                return tl::make_unexpected(value.error());
            // The layer error jumps at rounding: straight-through steps are taken as they are.
            if (m_problem.layer || *value <= *f - kArmijo * t * skew.squaredNorm() / 2) {
                r = trial;
                return true;
            }
        }
        return false;
    }

    const FitInput &m_input;
    const Problem &m_problem;
    TrainingRecord &m_record;
    std::size_t m_done, m_total;
};

Expected<Dense> startOf(const FitInput &input, std::size_t block, std::size_t index)
{
    if (input.params.isWord("init", "identity"))
        return Dense(Dense::Identity(Eigen::Index(block), Eigen::Index(block)));
    RandomStream stream(input.seed, "init" + input.purposeSuffix, input.streamId + (index ? "/" + std::to_string(index) : ""));
    if (input.params.isWord("init", "haar"))
        return eigenMatrix(randomOrthogonal(stream, block));
    auto op = block == input.edge->channels ? hadamardFor(block) : blockHadamardFor(block, block);
    if (!op)
        return tl::make_unexpected(op.error());
    HadamardOp hadamard = std::get<HadamardOp>(op->value);
    hadamard.signs = randomSigns(stream, block);
    return eigenMatrix(denseOf(Operator{std::move(hadamard)}));
}

Operator rotationOperator(const std::vector<Dense> &rotations)
{
    if (rotations.size() == 1)
        return {DenseOp{planishMatrix(rotations.front()), planishMatrix(rotations.front().transpose()), true}};
    BlockDenseOp op;
    op.block = std::size_t(rotations.front().rows());
    op.orthogonal = true;
    for (std::size_t b = 0; b < rotations.size(); ++b) {
        op.blocks.push_back(planishMatrix(rotations[b]));
        op.inverses.push_back(planishMatrix(rotations[b].transpose()));
        op.assignment.push_back(std::int32_t(b));
    }
    return {std::move(op)};
}

struct Sides {
    MatrixD fit, valid, w;
};

Expected<Sides> sidesAfter(const FitInput &input, const Transform &before)
{
    Sides sides{applyToActivations(before, input.fitting.x().view()), applyToActivations(before, input.validation.x().view()), {}};
    auto w = applyToWeights(before, stackedWeights(input.consumers).view());
    if (!w)
        return tl::make_unexpected(w.error());
    sides.w = std::move(*w);
    return sides;
}

Expected<Dense> learnBlock(const FitInput &input, const Sides &sides, std::size_t block, std::size_t index, TrainingRecord &record)
{
    const std::size_t begin = index * block, blocks = sides.fit.cols() / block;
    Problem problem{learned::normalisedRows(columnsOf(sides.fit.view(), begin, block).view()), learned::normalisedRows(columnsOf(sides.valid.view(), begin, block).view()),
                    learned::normalisedRows(columnsOf(sides.w.view(), begin, block).view()), objectiveOf(input.params), input.params.isWord("weights", "on")};
    auto start = startOf(input, block, index);
    if (!start)
        return start;
    const bool wantsLayer = input.params.isWord("objective", "layer");
    const LayerError layer(input, sides.fit, sides.w), layerValid(input, sides.valid, sides.w);
    Problem fine = problem;
    fine.layer = &layer;
    fine.layerValid = &layerValid;
    const std::int64_t steps = input.params.integer("steps");
    if (wantsLayer)
        return Learner(input, fine, record, index, blocks).run(*start, steps);
    auto rotation = Learner(input, problem, record, index, blocks).run(*start, steps);
    if (rotation && input.params.isWord("refine", "layer"))
        return Learner(input, fine, record, index, blocks).run(*rotation, std::max<std::int64_t>(1, steps / 4));
    return rotation;
}

Expected<std::size_t> widthOf(const FitInput &input)
{
    const std::size_t channels = input.edge->channels;
    auto block = blockOf(input, channels <= kLargestFull ? channels : kDefaultBlock);
    if (!block)
        return block;
    if (channels % *block != 0 || *block > kLargestFull)
        return refusal(input.edge->id.value, "a learned rotation of " + std::to_string(channels) + " channels in blocks of " + std::to_string(*block),
                       "a block of at most 4096 that divides the width (--set block=…)", "divisibility");
    if (*block != channels && (input.params.isWord("objective", "layer") || input.params.isWord("refine", "layer")))
        return refusal(input.edge->id.value, "the layer error couples the blocks", "full width, or another objective", "divisibility");
    return block;
}

Expected<Rewrite> fitSpinquant(const FitInput &input)
{
    auto block = widthOf(input);
    if (!block)
        return tl::make_unexpected(block.error());
    Rewrite rewrite;
    if (input.params.isWord("gain", "absorb")) {
        auto gain = absorbedGain(input);
        if (!gain)
            return tl::make_unexpected(gain.error());
        rewrite.input = std::move(*gain);
    }
    auto sides = sidesAfter(input, rewrite.input);
    if (!sides)
        return tl::make_unexpected(sides.error());
    const auto started = std::chrono::steady_clock::now();
    TrainingRecord record{.optimizer = input.params.word("optimizer"), .schedule = "cosine", .objective = input.params.word("objective"), .init = input.params.word("init"), .betas = {}};
    record.lr = input.params.real("lr");
    record.steps = input.params.integer("steps");
    record.batchRows = std::int64_t(sides->fit.rows());
    record.ste = input.params.isWord("objective", "layer") || input.params.isWord("refine", "layer");
    std::vector<Dense> rotations;
    for (std::size_t b = 0; b < input.edge->channels / *block; ++b) {
        auto rotation = learnBlock(input, *sides, *block, b, record);
        if (!rotation)
            return tl::make_unexpected(rotation.error());
        rotations.push_back(std::move(*rotation));
    }
    record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    rewrite.input.operators.push_back(rotationOperator(rotations));
    rewrite.fitted["block"] = std::int64_t(*block);
    rewrite.fitted["best_step"] = record.bestStep;
    rewrite.training = std::move(record);
    rewrite.specs = input.specs;
    rewrite.notes.push_back("edge-local proxy: the published method trains on the network's loss");
    return rewrite;
}

/// Two products of the gradient and one solve a step, at about 20 GFLOP/s in double.
double estimateSpinquant(std::size_t channels, std::size_t outputs, std::size_t rows, const Params &params)
{
    const double asked = double(params.integer("block"));
    const double b = asked > 0 ? asked : double(channels <= kLargestFull ? channels : kDefaultBlock), blocks = double(channels) / b;
    const double flops = blocks * (6.0 * double(rows + outputs) * b * b + 2.7 * b * b * b);
    return double(params.integer("steps")) * flops / 2e10;
}

} // namespace

MethodRow spinquantRow()
{
    return {.key = "spinquant",
            .label = "Learned rotation (SpinQuant, edge-local)",
            .source = "arXiv 2405.16406; facebookresearch/SpinQuant",
            .needs = {Need::Activations, Need::Weights, Need::Specs},
            .learned = true,
            .params = {enumParam("objective", {"l4", "lp", "kurtosis", "softmax", "whip", "peak", "layer"}, "rotation.md 5.3; KurTail is kurtosis, DartQuant whip, PSOT peak"),
                       enumParam("weights", {"on", "off"}, "the same term for W"), integerParam("steps", 1, 10000, "200", "descent steps"),
                       realParam("lr", 1e-4, 10, 0.01, "0.05", "largest step; decays by cosine"),
                       blockParam("channels per rotation; 0: full up to 4096, above it 512"),
                       enumParam("init", {"hadamard", "haar", "identity"}, "where learning starts"), enumParam("refine", {"none", "layer"}, "a last stage on the layer error"),
                       enumParam("optimizer", {"cayley", "official"}, "exact Cayley steps, or the released five iterations"),
                       realParam("p", 2.5, 16, 0.5, "4", "of lp"), realParam("temperature", 0.1, 10, 0.1, "2", "of peak"), realParam("beta", 1, 100, 1, "20", "of softmax"),
                       enumParam("variant", {"no_had", "had"}, "of a stream plan"), gainParam("absorb"), searchRowsParam()},
            .fit = fitSpinquant,
            .estimateSeconds = estimateSpinquant};
}

} // namespace planish
