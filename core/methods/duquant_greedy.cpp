#include "core/methods/duquant_greedy.h"

#include <algorithm>
#include <cmath>

#include <Eigen/Dense>

#include "core/methods/dense.h"

#include "core/transform/random_orthogonal.h"

namespace planish {
namespace {

/// Step matrix M = Rt Q (right) or Q Rt (left), Q = blkdiag(1, Q').
Dense stepMatrix(const Dense &base, const GreedyOptions &options, RandomStream &stream)
{
    if (options.q == DuquantQ::Identity || base.rows() < 2)
        return base;
    Dense q = Dense::Identity(base.rows(), base.cols());
    q.bottomRightCorner(base.rows() - 1, base.cols() - 1) = eigenMatrix(randomOrthogonal(stream, std::size_t(base.rows()) - 1));
    return options.side == DuquantQSide::Right ? Dense(base * q) : Dense(q * base);
}

struct Extreme {
    double peak = 0;
    Eigen::Index column = 0;
};

/// Peak and the column the next step works on. Maximum minus minimum, or the largest magnitude (paper).
Extreme extremeOf(const Dense &x, DuquantVariant variant)
{
    Eigen::Index maxRow = 0, maxColumn = 0, minRow = 0, minColumn = 0;
    const double high = x.maxCoeff(&maxRow, &maxColumn), low = x.minCoeff(&minRow, &minColumn);
    const bool useHigh = std::abs(high) >= std::abs(low);
    const Eigen::Index row = useHigh ? maxRow : minRow, column = useHigh ? maxColumn : minColumn;
    if (variant == DuquantVariant::Paper)
        return {std::max(std::abs(high), std::abs(low)), column};
    // The released code takes the row part of divmod(argmax, B): (flat index div B) mod B.
    return {high - low, variant == DuquantVariant::Official ? row % x.cols() : column};
}

void swapColumns(Dense &m, Eigen::Index c)
{
    if (c != 0)
        m.col(0).swap(m.col(c));
}

/// m <- m M_c with M_c = M after swapping rows and columns 0 and c.
void advance(Dense &m, const Dense &step, Eigen::Index c)
{
    swapColumns(m, c);
    m = (m * step).eval();
    swapColumns(m, c);
}

struct Search {
    Dense best;
    std::int64_t bestStep = 0;
    std::vector<double> peaks;
};

Search searchOn(Dense x, const GreedyOptions &options, RandomStream &stream)
{
    const Dense base = eigenMatrix(duquantBase(options.block));
    const bool perStep = options.variant == DuquantVariant::Paper;
    Dense step = stepMatrix(base, options, stream);
    Dense rotation = Dense::Identity(base.rows(), base.cols());
    Search search{rotation, 0, {extremeOf(x, options.variant).peak}};
    double lowest = search.peaks.front();
    for (std::int64_t n = 1; n <= options.steps; ++n) {
        const Extreme extreme = extremeOf(x, options.variant);
        if (perStep && n > 1)
            step = stepMatrix(base, options, stream);
        advance(x, step, extreme.column);
        advance(rotation, step, extreme.column);
        const double peak = extremeOf(x, options.variant).peak;
        search.peaks.push_back(peak);
        if (peak < lowest) {
            lowest = peak;
            search.best = rotation;
            search.bestStep = n;
        }
    }
    return search;
}

} // namespace

MatrixD duquantBase(std::size_t block)
{
    const auto size = Eigen::Index(block);
    Dense r = Dense::Identity(size, size);
    for (Eigen::Index i = 0; i + 1 < size; ++i) {
        const double c = 1.0 / std::sqrt(double(i) + 2.0), s = std::sqrt(double(i) + 1.0) / std::sqrt(double(i) + 2.0);
        const Dense upper = r.row(i), lower = r.row(i + 1);
        r.row(i) = c * upper - s * lower;
        r.row(i + 1) = s * upper + c * lower;
    }
    r.row(0).swap(r.row(size - 1));
    r.col(0).swap(r.col(size - 1));
    return planishMatrix(r);
}

GreedyResult greedyRotation(ConstViewD x, const GreedyOptions &options, RandomStream &stream)
{
    const std::size_t blocks = x.cols / options.block;
    GreedyResult result;
    if (options.variant == DuquantVariant::Paper) {
        for (std::size_t b = 0; b < blocks; ++b) {
            Dense part(Eigen::Index(x.rows), Eigen::Index(options.block));
            for (std::size_t r = 0; r < x.rows; ++r)
                std::copy_n(x.row(r).data() + b * options.block, options.block, part.row(Eigen::Index(r)).data());
            Search search = searchOn(std::move(part), options, stream);
            result.rotations.push_back(planishMatrix(search.best));
            result.bestStep.push_back(search.bestStep);
            result.assignment.push_back(std::int32_t(b));
            if (b == 0)
                result.peaks = search.peaks;
        }
        return result;
    }
    Dense all(Eigen::Index(x.rows * blocks), Eigen::Index(options.block));
    for (std::size_t r = 0; r < x.rows; ++r)
        std::copy_n(x.row(r).data(), x.cols, all.data() + r * x.cols);
    Search search = searchOn(std::move(all), options, stream);
    result.rotations.push_back(planishMatrix(search.best));
    result.bestStep.push_back(search.bestStep);
    result.assignment.assign(blocks, 0);
    result.peaks = std::move(search.peaks);
    return result;
}

} // namespace planish
