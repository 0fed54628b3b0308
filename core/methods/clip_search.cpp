#include "core/methods/clip_search.h"

#include <algorithm>
#include <cmath>

#include "core/methods/kernel_result.h"
#include "core/methods/share_ranges.h"

namespace planish {
namespace {

Expected<MatrixD> errorAt(const Backend &backend, const Resident &matrix, const NumberGrid &grid, const std::string &subject)
{
    auto quantized = fromKernel(backend.quantize(matrix, QuantizeRequest{.grid = grid}), subject);
    if (!quantized)
        return tl::make_unexpected(quantized.error());
    return fromKernel(backend.download(*quantized->error), subject);
}

NumberGrid atRatio(NumberGrid grid, double ratio)
{
    grid.clip = {ClipKind::Fixed, ratio};
    return grid;
}

/// Keeps per share the ratio with the strictly smaller loss.
void keepBetter(std::vector<double> &best, std::vector<double> &bestLoss, const std::vector<double> &loss, double ratio)
{
    if (best.empty()) {
        best.assign(loss.size(), ratio);
        bestLoss = loss;
        return;
    }
    for (std::size_t i = 0; i < loss.size(); ++i) {
        if (loss[i] < bestLoss[i]) {
            bestLoss[i] = loss[i];
            best[i] = ratio;
        }
    }
}

/// X_g^T X_g of every group, row-major blocks.
std::vector<MatrixD> groupGrams(const MatrixD &x, std::size_t group)
{
    std::vector<MatrixD> grams;
    for (std::size_t begin = 0; begin < x.cols(); begin += group) {
        const std::size_t size = std::min(group, x.cols() - begin);
        MatrixD gram(size, size);
        for (std::size_t m = 0; m < x.rows(); ++m)
            for (std::size_t i = 0; i < size; ++i)
                for (std::size_t j = 0; j < size; ++j)
                    gram(i, j) += x(m, begin + i) * x(m, begin + j);
        grams.push_back(std::move(gram));
    }
    return grams;
}

double quadraticForm(std::span<const double> e, const MatrixD &gram)
{
    double total = 0;
    for (std::size_t i = 0; i < e.size(); ++i) {
        double row = 0;
        for (std::size_t j = 0; j < e.size(); ++j)
            row += gram(i, j) * e[j];
        total += e[i] * row;
    }
    return total;
}

} // namespace

std::vector<double> clipRatios(std::int64_t grid, double maxShrink)
{
    std::vector<double> ratios;
    const auto count = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(grid) * maxShrink));
    for (std::int64_t i = 0; i < std::max<std::int64_t>(count, 1); ++i)
        ratios.push_back(1.0 - static_cast<double>(i) / static_cast<double>(grid));
    return ratios;
}

Clip uniformClip(Target target, double ratio, std::size_t consumer)
{
    return {.target = target,
            .kind = Clip::Kind::Multiplier,
            .lo = {ratio},
            .hi = {ratio},
            .consumer = consumer,
            .clampsValues = false};
}

Expected<double> tensorError(const Backend &backend, const Resident &matrix, const NumberGrid &grid, double norm,
                             const std::string &subject, std::vector<double> *perShare)
{
    auto error = errorAt(backend, matrix, grid, subject);
    if (!error)
        return tl::make_unexpected(error.error());
    const std::size_t perRow = sharesPerRow(grid, error->cols());
    const std::size_t group = perRow > 1 ? grid.group : error->cols();
    if (perShare)
        perShare->assign(shareCount(grid, error->rows(), error->cols()), 0.0);
    double total = 0;
    for (std::size_t r = 0; r < error->rows(); ++r) {
        for (std::size_t k = 0; k < error->cols(); ++k) {
            const double value = norm == 2 ? (*error)(r, k) * (*error)(r, k) : std::pow(std::abs((*error)(r, k)), norm);
            total += value;
            if (!perShare)
                continue;
            const std::size_t share = grid.sharing == Sharing::Tensor    ? 0
                                      : grid.sharing == Sharing::Channel ? k
                                                                         : r * perRow + k / group;
            (*perShare)[share] += value;
        }
    }
    return total;
}

Expected<std::vector<double>> ratiosByTensor(const Backend &backend, const Resident &matrix, const NumberGrid &grid, double norm,
                                             const std::vector<double> &ratios, const std::string &subject)
{
    std::vector<double> best, bestLoss, loss;
    for (const double ratio : ratios) {
        if (auto total = tensorError(backend, matrix, atRatio(grid, ratio), norm, subject, &loss); !total)
            return tl::make_unexpected(total.error());
        keepBetter(best, bestLoss, loss, ratio);
    }
    return best;
}

Expected<std::vector<double>> ratiosByGroupOutput(const Backend &backend, const MatrixD &x, const Resident &weight,
                                                  const NumberGrid &grid, const std::vector<double> &ratios,
                                                  const std::string &subject)
{
    const std::size_t perRow = sharesPerRow(grid, x.cols());
    const std::size_t group = perRow > 1 ? grid.group : x.cols();
    const std::vector<MatrixD> grams = groupGrams(x, group);
    std::vector<double> best, bestLoss;
    for (const double ratio : ratios) {
        auto error = errorAt(backend, weight, atRatio(grid, ratio), subject);
        if (!error)
            return tl::make_unexpected(error.error());
        std::vector<double> loss(error->rows() * perRow);
        for (std::size_t n = 0; n < error->rows(); ++n)
            for (std::size_t g = 0; g < perRow; ++g)
                loss[n * perRow + g] = quadraticForm(std::as_const(*error).row(n).subspan(g * group, grams[g].rows()), grams[g]);
        keepBetter(best, bestLoss, loss, ratio);
    }
    return best;
}

} // namespace planish
