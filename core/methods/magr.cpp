// MagR (arXiv 2406.00800): lower the row maxima of W inside the near-null space of X by proximal gradient. Changes the function;
// `function_change` takes the place of the equivalence gate. rotation.md 7.11.
#include <algorithm>
#include <cmath>

#include <Eigen/Dense>

#include "core/methods/dense.h"
#include "core/methods/method_rows.h"
#include "core/methods/param_rows.h"
#include "core/methods/search_loss.h"

namespace planish {
namespace {

/// Largest eigenvalue of the symmetric matrix G, by power iteration from a fixed start; an upper bound after the last factor.
double largestEigenvalue(const Dense &g)
{
    Eigen::VectorXd v = Eigen::VectorXd::Ones(g.rows()).normalized();
    double value = 0;
    for (int i = 0; i < 200; ++i) {
        const Eigen::VectorXd next = g * v;
        const double norm = next.norm();
        if (norm == 0.0)
            return 0.0;
        if (std::abs(norm - value) < 1e-10 * norm)
            break;
        value = norm;
        v = next / norm;
    }
    return value * 1.0001;
}

/// prox of t ||.||_inf: v minus its projection on the l1 ball of radius t.
void proximal(std::span<double> v, double t)
{
    std::vector<double> magnitudes(v.size());
    double sum = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
        magnitudes[i] = std::abs(v[i]);
        sum += magnitudes[i];
    }
    if (sum <= t) {
        std::ranges::fill(v, 0.0);
        return;
    }
    std::ranges::sort(magnitudes, std::greater<>());
    double partial = 0, theta = 0;
    for (std::size_t i = 0; i < magnitudes.size(); ++i) {
        partial += magnitudes[i];
        const double candidate = (partial - t) / double(i + 1);
        if (candidate >= magnitudes[i])
            break;
        theta = candidate;
    }
    for (double &value : v) {
        const double projected = std::copysign(std::max(std::abs(value) - theta, 0.0), value);
        value -= projected;
    }
}

Expected<Rewrite> fitMagr(const FitInput &input)
{
    const MatrixD &rows = input.calibration.x();
    const Eigen::Map<const Dense> x(rows.data(), Eigen::Index(rows.rows()), Eigen::Index(rows.cols()));
    const Dense g = x.transpose() * x;
    const double top = largestEigenvalue(g);
    if (!(top > 0.0))
        return refusal(input.edge->id.value, "all calibration rows are zero", "rows that are not all zero", "non_finite_factor");
    Rewrite rewrite;
    rewrite.changesFunction = true;
    const std::int64_t steps = input.params.integer("steps");
    for (std::size_t i = 0; i < input.consumers.size(); ++i) {
        const MatrixD &original = *input.consumers[i].weight;
        const Eigen::Map<const Dense> w0(original.data(), Eigen::Index(original.rows()), Eigen::Index(original.cols()));
        const double t = input.params.real("penalty") * w0.cwiseAbs().maxCoeff() / top;
        Dense w = w0;
        for (std::int64_t step = 0; step < steps; ++step) {
            if (!reportTrial(input, "magr", std::size_t(i) * std::size_t(steps) + std::size_t(step), input.consumers.size() * std::size_t(steps)))
                return cancelled(input.edge->id.value);
            w -= (w - w0) * g / top;
            for (Eigen::Index n = 0; n < w.rows(); ++n)
                proximal({w.row(n).data(), std::size_t(w.cols())}, t);
        }
        MatrixD replaced(original.rows(), original.cols());
        std::copy_n(w.data(), replaced.size(), replaced.data());
        rewrite.replaced.emplace_back(std::move(replaced));
    }
    return rewrite;
}

} // namespace

MethodRow magrRow()
{
    return {.key = "magr",
            .label = "MagR weight magnitude reduction",
            .source = "arXiv 2406.00800",
            .needs = {Need::Activations, Need::Weights, Need::Specs},
            .changesFunction = true,
            .mustBeFirst = true,
            .params = {realParam("penalty", 0, 1, 1e-4, "1e-3", "a = penalty times max abs W (ours)"), integerParam("steps", 1, 10000, "150", "proximal gradient steps (ours)")},
            .fit = fitMagr};
}

} // namespace planish
