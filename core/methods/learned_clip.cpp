#include "core/methods/learned_clip.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/methods/kernel_result.h"
#include "core/methods/share_ranges.h"

namespace planish {
namespace {

/// Which share an element belongs to.
class Shares {
public:
    Shares(const NumberGrid &grid, std::size_t cols)
        : m_sharing(grid.sharing), m_perRow(sharesPerRow(grid, cols)), m_width(m_perRow > 1 ? grid.group : cols)
    {
    }
    std::size_t at(Eigen::Index row, Eigen::Index column) const
    {
        if (m_sharing == Sharing::Tensor)
            return 0;
        if (m_sharing == Sharing::Channel)
            return static_cast<std::size_t>(column);
        return static_cast<std::size_t>(row) * m_perRow + static_cast<std::size_t>(column) / m_width;
    }

private:
    Sharing m_sharing;
    std::size_t m_perRow, m_width;
};

/// The ends of a share that move its step, after the factors; an end the dialect replaces by 0 does not.
struct Ends {
    double high = 0, low = 0;
    bool highMoves = false, lowMoves = false;
};

Ends endsOf(const Range &whole, double highFactor, double lowFactor, Dialect dialect)
{
    Ends ends{whole.hi * highFactor, whole.lo * lowFactor, true, true};
    if (dialect == Dialect::Zero) {
        ends.highMoves = ends.high > 0.0;
        ends.lowMoves = ends.low < 0.0;
        ends.high = std::max(ends.high, 0.0);
        ends.low = std::min(ends.low, 0.0);
    } else if (!isAsymmetric(dialect)) {
        ends.highMoves = std::abs(ends.high) >= std::abs(ends.low);
        ends.lowMoves = !ends.highMoves;
    }
    return ends;
}

/// dstep/dhigh and dstep/dlow: the step is proportional to high - low, or to the larger magnitude.
std::pair<double, double> stepSlopes(const Ends &ends, double step, Dialect dialect)
{
    if (isAsymmetric(dialect)) {
        const double range = ends.high - ends.low;
        if (!(range > 0.0))
            return {0.0, 0.0};
        return {ends.highMoves ? step / range : 0.0, ends.lowMoves ? -step / range : 0.0};
    }
    const double bound = ends.highMoves ? ends.high : ends.low;
    if (bound == 0.0)
        return {0.0, 0.0};
    return {ends.highMoves ? step / bound : 0.0, ends.lowMoves ? step / bound : 0.0};
}

/// dL/dstep of every share, and dL/dw of the elements in range.
std::vector<double> throughCodes(const Dense &w, const ClippedMatrix &clipped, const Shares &shares, const Dense &toValue, Dense &toW)
{
    std::vector<double> toStep(clipped.steps.size(), 0.0);
    for (Eigen::Index n = 0; n < w.rows(); ++n) {
        for (Eigen::Index k = 0; k < w.cols(); ++k) {
            const std::size_t share = shares.at(n, k);
            const double step = clipped.steps[share], error = clipped.value(n, k) - w(n, k);
            const bool saturated = std::abs(error) > 0.5 * std::abs(step) * (1 + 1e-9);
            toStep[share] += toValue(n, k) * (saturated ? clipped.value(n, k) : error) / step;
            toW(n, k) = saturated ? 0.0 : toValue(n, k);
        }
    }
    return toStep;
}

} // namespace

double sigmoid(double x)
{
    return 1.0 / (1.0 + std::exp(-x));
}

Expected<ClippedMatrix> clippedMatrix(const Backend &backend, const Dense &w, const NumberGrid &grid, const ClipLogits *logits,
                                      const std::string &subject)
{
    const MatrixD matrix = planishMatrix(w);
    ClippedMatrix clipped{{}, {}, shareRanges(grid, matrix.view())};
    FixedRanges ranges = clipped.whole;
    for (std::size_t j = 0; logits && j < ranges.size(); ++j)
        ranges[j] = {ranges[j].lo * sigmoid(logits->low[j]), ranges[j].hi * sigmoid(logits->high[j])};
    auto resident = fromKernel(backend.upload(matrix.view()), subject);
    if (!resident)
        return tl::make_unexpected(resident.error());
    auto quantized = fromKernel(backend.quantize(**resident, {.grid = grid, .ranges = logits ? &ranges : nullptr}), subject);
    if (!quantized)
        return tl::make_unexpected(quantized.error());
    auto value = fromKernel(backend.download(*quantized->reconstructed), subject);
    if (!value)
        return tl::make_unexpected(value.error());
    clipped.value = eigenMatrix(*value);
    clipped.steps = std::move(quantized->steps);
    return clipped;
}

Dense backThroughClip(const Dense &w, const ClippedMatrix &clipped, const NumberGrid &grid, const ClipLogits *logits,
                      const Dense &toValue, ClipLogits *slopes)
{
    const Shares shares(grid, static_cast<std::size_t>(w.cols()));
    Dense toW(w.rows(), w.cols());
    const std::vector<double> toStep = throughCodes(w, clipped, shares, toValue, toW);
    std::vector<double> toHigh(toStep.size()), toLow(toStep.size());
    for (std::size_t j = 0; j < toStep.size(); ++j) {
        const double g = logits ? sigmoid(logits->high[j]) : 1.0, b = logits ? sigmoid(logits->low[j]) : 1.0;
        const Ends ends = endsOf(clipped.whole[j], g, b, grid.dialect);
        const auto [byHigh, byLow] = stepSlopes(ends, clipped.steps[j], grid.dialect);
        if (logits && slopes) {
            slopes->high[j] += toStep[j] * byHigh * clipped.whole[j].hi * g * (1 - g);
            slopes->low[j] += toStep[j] * byLow * clipped.whole[j].lo * b * (1 - b);
        }
        toHigh[j] = toStep[j] * byHigh * g;
        toLow[j] = toStep[j] * byLow * b;
    }
    // The first element that holds an extremum receives its slope.
    for (Eigen::Index n = 0; n < w.rows(); ++n) {
        for (Eigen::Index k = 0; k < w.cols(); ++k) {
            const std::size_t share = shares.at(n, k);
            if (w(n, k) == clipped.whole[share].hi)
                toW(n, k) += std::exchange(toHigh[share], 0.0);
            if (w(n, k) == clipped.whole[share].lo)
                toW(n, k) += std::exchange(toLow[share], 0.0);
        }
    }
    return toW;
}

} // namespace planish
