// SVDQuant (arXiv 2411.05007; deepcompressor): smoothing, then a low-rank 16-bit branch that carries what 4 bits cannot.
// Y = Q(X') Q(W' - L1 L2)^T + X' (L1 L2)^T. rotation.md 7.8.
#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/Dense>

#include "core/methods/channel_factors.h"
#include "core/methods/dense.h"
#include "core/methods/kernel_result.h"
#include "core/methods/method_rows.h"
#include "core/methods/param_rows.h"
#include "core/methods/rotation_parts.h"
#include "core/methods/search_loss.h"

namespace planish {
namespace {

struct Branch {
    Dense left, right; ///< [N, r], [r, K]
};

/// Best rank-r factors, singular values split evenly, through the eigenvectors of the smaller Gram matrix.
Branch truncated(const Dense &w, Eigen::Index rank)
{
    const bool wide = w.cols() > w.rows();
    const Dense gram = wide ? Dense(w * w.transpose()) : Dense(w.transpose() * w);
    const Eigen::SelfAdjointEigenSolver<Dense> solver(gram);
    const Dense top = solver.eigenvectors().rightCols(rank).rowwise().reverse();
    // W = U U^T W (wide) or W V V^T: exact projections, so small singular values lose nothing.
    return wide ? Branch{top, top.transpose() * w} : Branch{w * top, top.transpose()};
}

/// The 39 pairs (alpha, beta) of rotation.md 7.8, identity first.
std::vector<std::pair<double, double>> smoothingPairs()
{
    std::vector<std::pair<double, double>> pairs{{0.0, 0.0}};
    for (int i = 1; i <= 19; ++i)
        pairs.emplace_back(i / 20.0, 0.0);
    for (int i = 1; i <= 19; ++i)
        pairs.emplace_back(i / 20.0, 1.0 - i / 20.0);
    return pairs;
}

class SvdQuant {
public:
    SvdQuant(const FitInput &input, SearchLoss &loss) : m_input(input), m_loss(loss) {}

    Expected<Rewrite> run()
    {
        auto chosen = smoothed();
        if (!chosen)
            return chosen;
        auto weights = transformedWeights(*chosen);
        if (!weights)
            return tl::make_unexpected(weights.error());
        return iterated(std::move(*chosen), *weights);
    }

private:
    Eigen::Index rankFor(const std::vector<Dense> &weights) const
    {
        Eigen::Index rank = m_input.params.integer("rank");
        for (const Dense &w : weights)
            rank = std::min({rank, w.rows(), w.cols()});
        return rank;
    }

    Rewrite scaledBy(double alpha, double beta) const
    {
        Rewrite rewrite;
        const auto a = reducedOverTies(channelStatistic(*m_input.statistics, ChannelStatistic::AbsMax), m_input.ties, TieReduction::Max);
        const auto w = reducedOverTies(weightMaxima(m_input.consumers), m_input.ties, TieReduction::Max);
        ScaleOp scale{std::vector<double>(a.size(), 1.0)};
        for (std::size_t k = 0; k < a.size(); ++k)
            if (a[k] > 0.0 && w[k] > 0.0)
                scale.divisor[k] = std::pow(a[k], alpha) / std::pow(w[k], beta);
        if (alpha != 0.0 || beta != 0.0)
            rewrite.input.operators.push_back({std::move(scale)});
        rewrite.fitted["alpha"] = alpha;
        rewrite.fitted["beta"] = beta;
        return rewrite;
    }

    Expected<Rewrite> smoothed()
    {
        if (m_input.params.isWord("smooth", "none"))
            return scaledBy(0.0, 0.0);
        if (m_input.params.isWord("smooth", "fixed"))
            return scaledBy(m_input.params.real("alpha"), 1.0 - m_input.params.real("alpha"));
        BestTrial best;
        Rewrite chosen;
        const auto pairs = smoothingPairs();
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            if (!reportTrial(m_input, "svdquant smoothing", i, pairs.size()))
                return cancelled(m_input.edge->id.value);
            Rewrite trial = scaledBy(pairs[i].first, pairs[i].second);
            auto weights = transformedWeights(trial);
            if (!weights)
                return tl::make_unexpected(weights.error());
            const Rewrite branched = withBranch(trial, *weights);
            auto value = m_loss(branched);
            if (!value)
                return tl::make_unexpected(value.error());
            if (best.offer("alpha=" + std::to_string(pairs[i].first) + " beta=" + std::to_string(pairs[i].second), pairs[i].first, *value))
                chosen = std::move(trial);
        }
        best.store(chosen);
        return chosen;
    }

    Expected<std::vector<Dense>> transformedWeights(const Rewrite &rewrite) const
    {
        std::vector<Dense> weights;
        for (const ConsumerWeights &consumer : m_input.consumers) {
            auto w = applyToWeights(rewrite.input, consumer.weight->view());
            if (!w)
                return tl::make_unexpected(w.error());
            weights.push_back(eigenMatrix(*w));
        }
        return weights;
    }

    bool stacked() const { return m_input.params.isWord("branch", "stacked"); }

    std::vector<Branch> branchesOf(const std::vector<Dense> &weights) const
    {
        std::vector<Branch> branches;
        if (!stacked()) {
            for (const Dense &w : weights)
                branches.push_back(truncated(w, rankFor(weights)));
            return branches;
        }
        Eigen::Index rows = 0;
        for (const Dense &w : weights)
            rows += w.rows();
        Dense all(rows, weights.front().cols());
        Eigen::Index next = 0;
        for (const Dense &w : weights) {
            all.middleRows(next, w.rows()) = w;
            next += w.rows();
        }
        const Branch shared = truncated(all, std::min({Eigen::Index(m_input.params.integer("rank")), all.rows(), all.cols()}));
        next = 0;
        for (const Dense &w : weights) {
            branches.push_back({shared.left.middleRows(next, w.rows()), shared.right});
            next += w.rows();
        }
        return branches;
    }

    Rewrite rewriteWith(const Rewrite &base, const std::vector<Branch> &branches) const
    {
        Rewrite rewrite = base;
        LowRank low;
        low.rank = std::size_t(branches.front().left.cols());
        low.stacked = stacked();
        low.precision = m_input.params.isWord("branch_precision", "bf16")     ? Precision::Bf16
                        : m_input.params.isWord("branch_precision", "stored") ? Precision::Stored
                                                                              : Precision::Fp16;
        for (const Branch &branch : branches) {
            low.left.push_back(planishMatrix(branch.left));
            low.right.push_back(planishMatrix(branch.right));
        }
        rewrite.lowRank = std::move(low);
        return rewrite;
    }

    Rewrite withBranch(const Rewrite &base, const std::vector<Dense> &weights) const { return rewriteWith(base, branchesOf(weights)); }

    /// What quantizing W' - L leaves: W' - Q(W' - L), whose best rank-r factors are the next branch.
    Expected<std::vector<Dense>> leftOver(const std::vector<Dense> &weights, const std::vector<Branch> &branches) const
    {
        std::vector<Dense> left;
        for (std::size_t i = 0; i < weights.size(); ++i) {
            const MatrixD residual = planishMatrix(weights[i] - branches[i].left * branches[i].right);
            auto resident = fromKernel(m_input.backend->upload(residual.view()), m_input.edge->id.value);
            if (!resident)
                return tl::make_unexpected(resident.error());
            auto quantized = fromKernel(m_input.backend->quantize(**resident, {.grid = m_input.specs.weight.grid}), m_input.edge->id.value);
            if (!quantized)
                return tl::make_unexpected(quantized.error());
            auto xhat = fromKernel(m_input.backend->download(*quantized->reconstructed), m_input.edge->id.value);
            if (!xhat)
                return tl::make_unexpected(xhat.error());
            left.push_back(weights[i] - eigenMatrix(*xhat));
        }
        return left;
    }

    Expected<Rewrite> iterated(Rewrite base, const std::vector<Dense> &weights)
    {
        std::vector<Branch> branches = branchesOf(weights);
        Rewrite best = rewriteWith(base, branches);
        auto lowest = m_loss(best);
        if (!lowest)
            return tl::make_unexpected(lowest.error());
        std::int64_t kept = 0;
        const std::int64_t iterations = m_input.specs.weight.isNone() ? 0 : m_input.params.integer("iterations");
        for (std::int64_t i = 1; i <= iterations; ++i) {
            if (!reportTrial(m_input, "svdquant branch", std::size_t(i), std::size_t(iterations)))
                break; // a cancelled fit keeps the best so far
            auto target = leftOver(weights, branches);
            if (!target)
                return tl::make_unexpected(target.error());
            branches = branchesOf(*target);
            Rewrite trial = rewriteWith(base, branches);
            auto loss = m_loss(trial);
            if (!loss)
                return tl::make_unexpected(loss.error());
            if (!(*loss < *lowest))
                break;
            lowest = loss;
            best = std::move(trial);
            kept = i;
        }
        best.fitted["iterations"] = kept;
        best.specs = m_input.specs;
        return best;
    }

    const FitInput &m_input;
    SearchLoss &m_loss;
};

Expected<Rewrite> fitSvdquant(const FitInput &input)
{
    auto loss = SearchLoss::create(input, searchPart(input.params, SearchPart::Fit));
    if (!loss)
        return tl::make_unexpected(loss.error());
    return SvdQuant(input, *loss).run();
}

} // namespace

MethodRow svdquantRow()
{
    return {.key = "svdquant",
            .label = "SVDQuant low-rank branch",
            .source = "arXiv 2411.05007; mit-han-lab/deepcompressor",
            .needs = {Need::Activations, Need::Weights, Need::Specs},
            .mustBeLast = true,
            .params = {integerParam("rank", 1, 1 << 16, "32", "of the branch; at most min(N, K)"),
                       integerParam("iterations", 0, 1000, "100", "0: one SVD; stops when the output error grows"),
                       enumParam("smooth", {"grid", "fixed", "none"}, "the 39 pairs of the tool, one alpha, or no scale"),
                       realParam("alpha", 0, 1, 0.05, "0.5", "of smooth=fixed"),
                       enumParam("branch", {"per_consumer", "stacked"}, "one SVD each, or one of the stacked weights"),
                       enumParam("branch_precision", {"fp16", "bf16", "stored"}, "in which the branch is kept"), tiesParam(), searchRowsParam()},
            .fit = fitSvdquant};
}

} // namespace planish
