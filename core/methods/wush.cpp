// WUSH (arXiv 2512.00956, IST-DASLab/WUSH): closed-form block transform after which every coordinate of X' and of W' in a block has
// the same energy. rotation.md 7.1, steps and sign rule as fixed there.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <Eigen/Dense>

#include "core/methods/dense.h"
#include "core/methods/method_rows.h"
#include "core/methods/param_rows.h"
#include "core/methods/rotation_parts.h"
#include "core/transform/hadamard_orders.h"

namespace planish {
namespace {

using View = Eigen::Map<const Dense>;

View eigenView(const MatrixD &m) { return {m.data(), Eigen::Index(m.rows()), Eigen::Index(m.cols())}; }

struct Factors {
    Dense transform, inverse; ///< T and T^-1
};

struct Options {
    double damping = .01, spectrumDamping = .01;
    bool finalHadamard = true;
};

/// Right singular frame of the b x N matrix A = L^T W^T / sqrt(N): A = V S U^T. S has b entries, descending; signs of V as documented.
void spectrum(const Dense &a, Dense &v, Eigen::VectorXd &s)
{
    const Eigen::Index b = a.rows();
    Dense reduced = a;
    if (a.cols() > b) {
        // A^T = Q R, so A = R^T Q^T shares V and S with R^T: b x b instead of b x N, without squaring the condition.
        const Dense tall = a.transpose();
        const Eigen::HouseholderQR<Dense> qr(tall);
        reduced = Dense(qr.matrixQR().topRows(b).triangularView<Eigen::Upper>()).transpose();
    }
    const Eigen::JacobiSVD<Dense> svd(reduced, Eigen::ComputeFullU);
    v = svd.matrixU();
    s = Eigen::VectorXd::Zero(b);
    s.head(svd.singularValues().size()) = svd.singularValues();
    for (Eigen::Index c = 0; c < b; ++c) {
        for (Eigen::Index r = 0; r < b; ++r) {
            if (std::abs(v(r, c)) > 1e-12) {
                if (v(r, c) < 0)
                    v.col(c) *= -1.0;
                break;
            }
        }
    }
}

/// Equal singular values are ordered by the row of the largest entry of their column of V.
void orderEqualValues(Dense &v, const Eigen::VectorXd &s)
{
    const Eigen::Index b = s.size();
    std::vector<Eigen::Index> order(static_cast<std::size_t>(b));
    std::iota(order.begin(), order.end(), 0);
    std::vector<Eigen::Index> largest(static_cast<std::size_t>(b));
    for (Eigen::Index c = 0; c < b; ++c)
        v.col(c).cwiseAbs().maxCoeff(&largest[std::size_t(c)]);
    std::stable_sort(order.begin(), order.end(), [&](Eigen::Index p, Eigen::Index q) {
        return s(p) != s(q) ? s(p) > s(q) : largest[std::size_t(p)] < largest[std::size_t(q)];
    });
    const Dense copy = v;
    for (Eigen::Index c = 0; c < b; ++c)
        v.col(c) = copy.col(order[std::size_t(c)]);
}

Factors hadamardOnly(const Dense &h) { return {h, h.transpose()}; }

/// T = H S^1/2 V^T L^-1 for one block, from the Cholesky factor of its moment.
Factors blockFactors(const Dense &lower, const Dense &w, const Dense &h, const Options &options)
{
    const Dense a = (lower.transpose() * w.transpose()) / std::sqrt(double(w.rows()));
    Dense v;
    Eigen::VectorXd s;
    spectrum(a, v, s);
    orderEqualValues(v, s);
    s.array() += options.spectrumDamping * s.mean();
    if (!(s.minCoeff() > 0.0))
        return hadamardOnly(h);
    const Eigen::VectorXd root = s.cwiseSqrt();
    const Dense inverseLower = lower.triangularView<Eigen::Lower>().solve(Dense::Identity(lower.rows(), lower.cols()));
    Factors f;
    f.transform = root.asDiagonal() * (v.transpose() * inverseLower);
    f.inverse = lower * v * root.cwiseInverse().asDiagonal();
    if (options.finalHadamard) {
        f.transform = h * f.transform;
        f.inverse = f.inverse * h.transpose();
    }
    return f;
}

Dense moment(const Dense &x, double damping, double meanDiagonal)
{
    Dense m = x.transpose() * x / double(x.rows());
    m.diagonal().array() += damping * (meanDiagonal < 0 ? m.diagonal().mean() : meanDiagonal);
    return m;
}

/// Lower Cholesky factors of the diagonal blocks: of each block's own moment, or the blocks of the factor of the whole moment.
std::vector<Dense> lowerFactors(const FitInput &input, std::size_t block, double damping)
{
    const MatrixD &x = input.calibration.x();
    std::vector<Dense> factors;
    if (input.params.isWord("moment", "global")) {
        const Dense whole = moment(eigenView(x), damping, -1.0);
        const Dense lower = whole.llt().matrixL();
        for (std::size_t begin = 0; begin < x.cols(); begin += block)
            factors.push_back(lower.block(Eigen::Index(begin), Eigen::Index(begin), Eigen::Index(block), Eigen::Index(block)));
        return factors;
    }
    for (std::size_t begin = 0; begin < x.cols(); begin += block) {
        const MatrixD part = columnsOf(x.view(), begin, block);
        factors.push_back(moment(eigenView(part), damping, -1.0).llt().matrixL());
    }
    return factors;
}

Expected<Rewrite> fitWush(const FitInput &input)
{
    const std::size_t own = scaleBlock(input.specs.act);
    auto block = blockOf(input, own != 0 ? own : 32);
    if (!block)
        return tl::make_unexpected(block.error());
    if (input.edge->channels % *block != 0)
        return refusal(input.edge->id.value, "block " + std::to_string(*block) + " does not divide " + std::to_string(input.edge->channels) + " channels",
                       "a block that divides them (--set block=…)", "divisibility");
    auto hadamard = blockHadamardFor(*block, *block);
    if (!hadamard)
        return tl::make_unexpected(hadamard.error());
    const MatrixD h = denseOf(*hadamard);
    const Options options{input.params.real("damping"), input.params.real("spectrum_damping"), input.params.isWord("final_hadamard", "on")};
    const MatrixD w = stackedWeights(input.consumers);
    const std::vector<Dense> lower = lowerFactors(input, *block, options.damping);
    BlockDenseOp op;
    op.block = *block;
    std::int64_t zeroBlocks = 0;
    for (std::size_t b = 0; b < lower.size(); ++b) {
        const MatrixD part = columnsOf(w.view(), b * *block, *block);
        const bool usable = lower[b].allFinite() && lower[b].diagonal().minCoeff() > 0.0 && eigenView(part).cwiseAbs().maxCoeff() > 0.0;
        const Factors f = usable ? blockFactors(lower[b], eigenView(part), eigenView(h), options) : hadamardOnly(eigenView(h));
        zeroBlocks += !usable;
        op.blocks.push_back(planishMatrix(f.transform.transpose()));
        op.inverses.push_back(planishMatrix(f.inverse.transpose()));
        op.assignment.push_back(std::int32_t(b));
    }
    Rewrite rewrite;
    rewrite.input.operators.push_back({std::move(op)});
    rewrite.fitted["block"] = std::int64_t(*block);
    if (zeroBlocks > 0)
        rewrite.clamps["zero_blocks"] = zeroBlocks;
    return rewrite;
}

} // namespace

MethodRow wushRow()
{
    return {.key = "wush",
            .label = "WUSH block transform",
            .source = "arXiv 2512.00956; IST-DASLab/WUSH",
            .needs = {Need::Activations, Need::Weights},
            .params = {blockParam("channels per block; 0: the scale block of the format, else 32"),
                       realParam("damping", 0, 1, 0.01, "0.01", "of the moment of X, times its mean diagonal"),
                       realParam("spectrum_damping", 0, 1, 0.01, "0.01", "of the singular values, times their mean"),
                       enumParam("moment", {"block", "global"}, "moment of each block, or the blocks of the factor of the whole moment (the repository)"),
                       enumParam("final_hadamard", {"on", "off"}, "off leaves unequal energies (ablation)"), tiesParam()},
            .fit = fitWush};
}

} // namespace planish
