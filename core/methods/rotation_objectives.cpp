#include "core/methods/rotation_objectives.h"

#include <cmath>

#include <Eigen/Dense>

namespace planish::learned {

namespace {

/// f and D = df/dZ for one objective; G = X^T D.
double valueAndSlope(const Dense &z, const ObjectiveOptions &o, Dense &slope)
{
    const double rows = double(z.rows()), k = double(z.cols());
    const auto a = z.array();
    switch (o.kind) {
    case Objective::L4:
        slope = 4.0 / rows * a.cube();
        return a.square().square().sum() / rows;
    case Objective::Lp:
        slope = o.p / rows * a.sign() * a.abs().pow(o.p - 1);
        return a.abs().pow(o.p).sum() / rows;
    case Objective::Whip:
        slope = -a.sign() * (-a.abs()).exp() / rows;
        return (-a.abs()).exp().sum() / rows;
    case Objective::Kurtosis: {
        double sum = 0;
        slope.resize(z.rows(), z.cols());
        for (Eigen::Index m = 0; m < z.rows(); ++m) {
            const auto row = z.row(m).array();
            const double s = row.square().sum(), q = row.square().square().sum();
            if (s == 0.0) {
                slope.row(m).setZero();
                continue;
            }
            sum += k * q / (s * s);
            slope.row(m) = (k * (4.0 * row.cube() / (s * s) - 4.0 * q * row / (s * s * s)) / rows).matrix();
        }
        return sum / rows;
    }
    case Objective::Softmax: {
        constexpr double kEps = 1e-12;
        double sum = 0;
        slope.resize(z.rows(), z.cols());
        for (Eigen::Index m = 0; m < z.rows(); ++m) {
            const Eigen::ArrayXd magnitude = (z.row(m).array().square() + kEps).sqrt().transpose();
            const double top = magnitude.maxCoeff();
            const Eigen::ArrayXd e = (o.beta * (magnitude - top)).exp();
            sum += top + std::log(e.sum()) / o.beta;
            slope.row(m) = ((e / e.sum()).transpose() * z.row(m).array() / magnitude.transpose() / rows).matrix();
        }
        return sum / rows;
    }
    case Objective::Peak: {
        // sqrt of the sum over rows of sum s^2 a^2, s = softmax(|z| / T).
        double total = 0;
        slope.resize(z.rows(), z.cols());
        for (Eigen::Index m = 0; m < z.rows(); ++m) {
            const Eigen::ArrayXd magnitude = z.row(m).array().abs().transpose();
            Eigen::ArrayXd s = ((magnitude - magnitude.maxCoeff()) / o.temperature).exp();
            s /= s.sum();
            const Eigen::ArrayXd square = s.square() * magnitude.square();
            const double row = square.sum();
            total += row;
            slope.row(m) = (z.row(m).array().sign() * (2.0 * s.square() * magnitude + 2.0 / o.temperature * (square - s * row)).transpose()).matrix();
        }
        const double cost = std::sqrt(total);
        slope /= 2.0 * std::max(cost, 1e-300);
        return cost;
    }
    }
    return 0;
}

} // namespace

double objectiveValue(const Dense &x, const Dense &rotation, const ObjectiveOptions &options, Dense *gradient)
{
    const Dense z = x * rotation;
    Dense slope;
    const double value = valueAndSlope(z, options, slope);
    if (gradient)
        *gradient = x.transpose() * slope;
    return value;
}

Dense normalisedRows(ConstViewD x)
{
    Dense rows(Eigen::Index(x.rows), Eigen::Index(x.cols));
    Eigen::Index kept = 0;
    for (std::size_t m = 0; m < x.rows; ++m) {
        const Eigen::Map<const Eigen::RowVectorXd> row(x.row(m).data(), Eigen::Index(x.cols));
        const double norm = row.norm();
        if (norm > 0.0)
            rows.row(kept++) = row * (std::sqrt(double(x.cols)) / norm);
    }
    return rows.topRows(kept);
}

Dense cayleyStep(const Dense &rotation, const Dense &skew, double t)
{
    const Dense identity = Dense::Identity(rotation.rows(), rotation.cols());
    const Dense left = identity + t / 2 * skew, right = (identity - t / 2 * skew) * rotation;
    return Eigen::PartialPivLU<Dense>(left).solve(right);
}

double orthogonalityResidual(const Dense &rotation)
{
    return (rotation.transpose() * rotation - Dense::Identity(rotation.rows(), rotation.cols())).cwiseAbs().maxCoeff();
}

Dense reorthogonalised(const Dense &rotation)
{
    const Eigen::HouseholderQR<Dense> qr(rotation);
    Dense q = qr.householderQ() * Dense::Identity(rotation.rows(), rotation.cols());
    for (Eigen::Index c = 0; c < q.cols(); ++c)
        if (qr.matrixQR()(c, c) < 0)
            q.col(c) *= -1.0;
    return q;
}

} // namespace planish::learned
