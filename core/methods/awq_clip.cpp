#include "core/methods/awq_clip.h"

#include <algorithm>
#include <cmath>

#include <Eigen/Dense>

#include "core/methods/dense.h"

#include "core/methods/kernel_result.h"
#include "core/methods/share_ranges.h"

namespace planish {
namespace {

// Start value of the tools' search: an error at or above it keeps the original maximum.
constexpr double kStartError = 1e9;

MatrixD sampled(const MatrixD &x, std::int64_t wanted)
{
    const std::size_t stride = std::max<std::size_t>(1, x.rows() / std::size_t(wanted));
    MatrixD part((x.rows() + stride - 1) / stride, x.cols());
    for (std::size_t r = 0; r < part.rows(); ++r)
        std::copy_n(x.row(r * stride).data(), x.cols(), part.row(r).data());
    return part;
}

struct Groups {
    std::size_t perRow = 1, width = 0;
    std::size_t begin(std::size_t g) const { return g * width; }
    std::size_t size(std::size_t g, std::size_t cols) const { return std::min(width, cols - g * width); }
};

Groups groupsOf(const NumberGrid &grid, std::size_t cols)
{
    const std::size_t perRow = sharesPerRow(grid, cols);
    const bool grouped = (grid.sharing == Sharing::Group || grid.sharing == Sharing::Block) && grid.group > 0;
    return {perRow, grouped ? std::min(grid.group, cols) : cols};
}

/// G_g = X_g^T X_g / M of every group.
std::vector<Dense> moments(const MatrixD &x, const Groups &groups)
{
    const Eigen::Map<const Dense> all(x.data(), Eigen::Index(x.rows()), Eigen::Index(x.cols()));
    std::vector<Dense> result;
    for (std::size_t g = 0; g < groups.perRow; ++g) {
        const auto part = all.middleCols(Eigen::Index(groups.begin(g)), Eigen::Index(groups.size(g, x.cols())));
        result.push_back(part.transpose() * part / double(x.rows()));
    }
    return result;
}

} // namespace

Expected<std::vector<double>> awqClipBounds(const Backend &backend, const MatrixD &xPrime, const MatrixD &wPrime, const NumberGrid &grid,
                                            const AwqClipOptions &options, const std::string &subject)
{
    const Groups groups = groupsOf(grid, wPrime.cols());
    const std::vector<Dense> gram = moments(sampled(xPrime, options.rows), groups);
    NumberGrid shares = grid;
    if (grid.sharing == Sharing::Tensor || grid.sharing == Sharing::Channel)
        return refusal(subject, "the clip of awq needs one range per row or group", "a weight spec with row or group sharing, or clip=off", "divisibility");
    std::vector<double> largest;
    for (const Range &range : shareRanges(shares, wPrime.view()))
        largest.push_back(std::max(std::abs(range.lo), std::abs(range.hi)));
    std::vector<double> best = largest, bestError(largest.size(), kStartError);
    auto resident = fromKernel(backend.upload(wPrime.view()), subject);
    if (!resident)
        return tl::make_unexpected(resident.error());
    const auto count = std::int64_t(double(options.grid) * options.shrink + 1e-9);
    for (std::int64_t i = 0; i < count; ++i) {
        std::vector<double> bound = largest;
        for (double &value : bound)
            value *= 1.0 - double(i) / double(options.grid);
        auto quantized = fromKernel(backend.quantize(**resident, {.grid = grid, .clampBound = &bound}), subject);
        if (!quantized)
            return tl::make_unexpected(quantized.error());
        auto xhat = fromKernel(backend.download(*quantized->reconstructed), subject);
        if (!xhat)
            return tl::make_unexpected(xhat.error());
        for (std::size_t n = 0; n < wPrime.rows(); ++n) {
            for (std::size_t g = 0; g < groups.perRow; ++g) {
                const auto size = Eigen::Index(groups.size(g, wPrime.cols()));
                const Eigen::Map<const Eigen::VectorXd> w(wPrime.row(n).data() + groups.begin(g), size), q(xhat->row(n).data() + groups.begin(g), size);
                const Eigen::VectorXd e = q - w;
                const double error = e.dot(gram[g] * e);
                const std::size_t share = n * groups.perRow + g;
                if (error < bestError[share]) {
                    bestError[share] = error;
                    best[share] = bound[share];
                }
            }
        }
    }
    return best;
}

} // namespace planish
