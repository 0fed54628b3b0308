#include "core/methods/kronecker_fit.h"

#include <algorithm>
#include <cmath>

#include <Eigen/LU>
#include <Eigen/SVD>

#include "core/methods/rotation_objectives.h"
#include "core/transform/random_orthogonal.h"

namespace planish::learned {
namespace {

constexpr double kLargestLog = 4.605170185988092; // ln 100, rotation.md 6.3

using Rows = Eigen::Map<Dense>;
using ConstRows = Eigen::Map<const Dense>;

/// Every row of x as [k1, k2], multiplied: left * Z * right.
Dense onBothSides(const Dense &x, const Dense &left, const Dense &right)
{
    const Eigen::Index k1 = left.cols(), k2 = right.rows();
    // Z right for all rows at once: their [k1, k2] parts lie under one another.
    const Dense half = ConstRows(x.data(), x.rows() * k1, k2) * right;
    Dense out(x.rows(), left.rows() * right.cols());
    for (Eigen::Index m = 0; m < x.rows(); ++m)
        Rows(out.data() + m * out.cols(), left.rows(), right.cols()).noalias() = left * half.middleRows(m * k1, k1);
    return out;
}

/// sum over rows of A_m B_m^T, A and B as [k1, k2] parts.
Dense sumOuter(const Dense &a, const Dense &b, Eigen::Index k1, Eigen::Index k2)
{
    Dense sum = Dense::Zero(k1, k1);
    for (Eigen::Index m = 0; m < a.rows(); ++m)
        sum.noalias() += ConstRows(a.data() + m * a.cols(), k1, k2) * ConstRows(b.data() + m * b.cols(), k1, k2).transpose();
    return sum;
}

/// sum over rows of A_m^T B_m: one product of the parts under one another.
Dense sumInner(const Dense &a, const Dense &b, Eigen::Index k1, Eigen::Index k2)
{
    return ConstRows(a.data(), a.rows() * k1, k2).transpose() * ConstRows(b.data(), b.rows() * k1, k2);
}

Dense haar(RandomStream &stream, std::size_t order)
{
    return eigenMatrix(randomOrthogonal(stream, order));
}

} // namespace

Dense kroneckerActivations(const Dense &x, const Factor &first, const Factor &second)
{
    return onBothSides(x, first.matrix.transpose(), second.matrix);
}

Dense kroneckerWeights(const Dense &w, const Factor &first, const Factor &second)
{
    return onBothSides(w, first.inverse, second.inverse.transpose());
}

KroneckerSlopes kroneckerSlopes(const Dense &x, const Dense &w, const Factor &first, const Factor &second, const Dense &toX, const Dense &toW)
{
    const Eigen::Index k1 = first.matrix.rows(), k2 = second.matrix.rows();
    const Dense one = Dense::Identity(k1, k1), two = Dense::Identity(k2, k2);
    KroneckerSlopes slopes;
    slopes.first = sumOuter(onBothSides(x, one, second.matrix), toX, k1, k2);
    slopes.second = sumInner(onBothSides(x, first.matrix.transpose(), two), toX, k1, k2);
    const Dense toInverse1 = sumOuter(toW, onBothSides(w, one, second.inverse.transpose()), k1, k2);
    const Dense toInverse2 = sumInner(toW, onBothSides(w, first.inverse, two), k1, k2);
    slopes.first -= first.inverse.transpose() * toInverse1 * first.inverse.transpose();
    slopes.second -= second.inverse.transpose() * toInverse2 * second.inverse.transpose();
    slopes.toX = onBothSides(toX, first.matrix, second.matrix.transpose());
    slopes.toW = onBothSides(toW, first.inverse.transpose(), second.inverse);
    return slopes;
}

void RotationAdam::step(Dense &rotation, const Dense &slope, double rate)
{
    const Dense skew = slope * rotation.transpose() - rotation * slope.transpose();
    std::vector<double> direction(std::size_t(skew.size()), 0.0);
    m_adam.step(direction, {skew.data(), std::size_t(skew.size())}, 1.0);
    // Adam leaves minus the step; the Cayley step subtracts its argument itself.
    const Dense moved = -Eigen::Map<const Dense>(direction.data(), skew.rows(), skew.cols());
    rotation = cayleyStep(rotation, 0.5 * (moved - moved.transpose()), rate);
}

LearnedFactor::LearnedFactor(FactorForm form, std::size_t order, RandomStream &stream)
    : m_form(form), m_log(order, 0.0), m_adamU(Eigen::Index(order)), m_adamV(Eigen::Index(order)), m_adamLog(order), m_adamDirect(order * order)
{
    m_u = haar(stream, order);
    m_v = form == FactorForm::Svd ? haar(stream, order) : Dense(Dense::Identity(Eigen::Index(order), Eigen::Index(order)));
    compose();
}

void LearnedFactor::compose()
{
    const Eigen::Map<const Eigen::VectorXd> r(m_log.data(), Eigen::Index(m_log.size()));
    const Eigen::VectorXd d = r.array().exp(), reciprocal = (-r.array()).exp();
    m_factor.matrix = m_u * d.asDiagonal() * m_v.transpose();
    m_factor.inverse = m_v * reciprocal.asDiagonal() * m_u.transpose();
}

bool LearnedFactor::step(const Dense &slope, double rate)
{
    if (!slope.allFinite())
        return false;
    if (m_form == FactorForm::Svd) {
        const Eigen::Map<const Eigen::VectorXd> r(m_log.data(), Eigen::Index(m_log.size()));
        const Eigen::VectorXd d = r.array().exp();
        const Dense toU = slope * m_v * d.asDiagonal(), toV = slope.transpose() * m_u * d.asDiagonal();
        const Eigen::VectorXd toLog = d.cwiseProduct((m_u.transpose() * slope * m_v).diagonal());
        m_adamU.step(m_u, toU, rate);
        m_adamV.step(m_v, toV, rate);
        m_adamLog.step(m_log, {toLog.data(), m_log.size()}, rate);
        compose();
        return true;
    }
    Factor trial = m_factor;
    m_adamDirect.step({trial.matrix.data(), std::size_t(trial.matrix.size())}, {slope.data(), std::size_t(slope.size())}, rate);
    trial.inverse = trial.matrix.partialPivLu().inverse();
    if (!trial.inverse.allFinite())
        return false;
    m_factor = std::move(trial);
    return true;
}

std::vector<double> LearnedFactor::logSingular() const
{
    if (m_form == FactorForm::Svd)
        return m_log;
    const Eigen::VectorXd values = Eigen::BDCSVD<Eigen::MatrixXd>(m_factor.matrix).singularValues();
    std::vector<double> logs;
    for (const double value : values)
        logs.push_back(std::log(value));
    return logs;
}

void LearnedFactor::contract(double ratio)
{
    if (m_form == FactorForm::Direct) {
        const Eigen::BDCSVD<Eigen::MatrixXd> svd(m_factor.matrix, Eigen::ComputeFullU | Eigen::ComputeFullV);
        m_u = svd.matrixU();
        m_v = svd.matrixV();
        m_log = logSingular();
    }
    const auto [low, high] = std::ranges::minmax(m_log);
    const double middle = (low + high) / 2;
    for (double &r : m_log)
        r = std::clamp(middle + ratio * (r - middle), -kLargestLog, kLargestLog);
    compose();
}

double LearnedFactor::residual() const
{
    if (m_form == FactorForm::Svd)
        return std::max(orthogonalityResidual(m_u), orthogonalityResidual(m_v));
    const Dense product = m_factor.matrix * m_factor.inverse;
    return (product - Dense::Identity(product.rows(), product.cols())).cwiseAbs().maxCoeff();
}

void LearnedFactor::tidy()
{
    if (m_form != FactorForm::Svd)
        return;
    m_u = reorthogonalised(m_u);
    m_v = reorthogonalised(m_v);
    compose();
}

double limitConditioning(LearnedFactor &first, LearnedFactor &second, double limit)
{
    const auto spread = [](const std::vector<double> &logs) { return std::ranges::max(logs) - std::ranges::min(logs); };
    const auto largest = [](const std::vector<double> &logs) { return std::max(std::ranges::max(logs), -std::ranges::min(logs)); };
    const std::vector<double> a = first.logSingular(), b = second.logSingular();
    const double together = spread(a) + spread(b), allowed = std::log(limit);
    const double ratio = together > allowed ? allowed / together : 1.0;
    for (auto [factor, logs] : {std::pair(&first, &a), std::pair(&second, &b)})
        if (ratio < 1.0 || largest(*logs) > kLargestLog)
            factor->contract(ratio);
    return std::exp(together * ratio);
}

} // namespace planish::learned
