// Slopes of the learned methods against central differences. Rounding has no slope, so the differences are taken of the function the
// straight-through rule stands for: codes frozen, steps and matrices free (diagonal.md 9.1, rotation.md 6.6).
#include <QtTest>

#include <cmath>
#include <functional>

#include <Eigen/LU>

#include "core/methods/kronecker_fit.h"
#include "core/methods/omniquant_layer.h"
#include "core/methods/straight_through.h"
#include "tests/support/fit_inputs.h"
#include "tests/support/matrices.h"

using namespace planish;
using namespace planish::test;

namespace {

constexpr double kDelta = 1e-6;
constexpr const char *kWeight = "int4:row:asym:dialect=free";

Dense randomDense(std::size_t rows, std::size_t cols, const char *id)
{
    return eigenMatrix(randomMatrix(rows, cols, id));
}

double centralDifference(double &value, const std::function<double()> &loss)
{
    const double before = value;
    value = before + kDelta;
    const double above = loss();
    value = before - kDelta;
    const double below = loss();
    value = before;
    return (above - below) / (2 * kDelta);
}

bool isClose(double slope, double numeric, double scale)
{
    return std::abs(slope - numeric) <= 1e-6 * std::max(scale, std::abs(numeric));
}

/// One matrix with frozen codes: in range w + (error / step) step, beyond it (end code) step, per row; int4, a range that need not hold 0.
class Frozen {
public:
    Frozen(const Dense &w, const ClippedMatrix &clipped) : m_share(w.rows(), w.cols()), m_inRange(w.rows(), w.cols())
    {
        for (Eigen::Index n = 0; n < w.rows(); ++n)
            for (Eigen::Index k = 0; k < w.cols(); ++k) {
                const double step = clipped.steps[std::size_t(n)], error = clipped.value(n, k) - w(n, k);
                m_inRange(n, k) = std::abs(error) <= 0.5 * step * (1 + 1e-9) ? 1.0 : 0.0;
                m_share(n, k) = (m_inRange(n, k) > 0 ? error : clipped.value(n, k)) / step;
                m_saturated += m_inRange(n, k) == 0.0;
            }
    }
    Dense operator()(const Dense &w, const ClipLogits &logits) const
    {
        Dense value(w.rows(), w.cols());
        for (Eigen::Index n = 0; n < w.rows(); ++n) {
            const double high = w.row(n).maxCoeff() * sigmoid(logits.high[std::size_t(n)]);
            const double low = w.row(n).minCoeff() * sigmoid(logits.low[std::size_t(n)]);
            value.row(n) = m_inRange.row(n).cwiseProduct(w.row(n)) + m_share.row(n) * ((high - low) / 15);
        }
        return value;
    }
    int saturated() const { return m_saturated; }

private:
    Dense m_share, m_inRange;
    int m_saturated = 0;
};

/// A state in which clips bite, scales differ and shifts are not zero.
OmniState someState()
{
    OmniState state{{0.3, -0.2, 0.1, 0.5, -0.4, 0.05}, {0.2, -0.1, 0.3, 0, 0.15, -0.25}, {}};
    state.clips.push_back({{0.9, 1.4, 2.0, 0.7}, {1.1, 0.8, 1.9, 2.5}});
    return state;
}

} // namespace

class TestLearnedGradients : public QObject {
    Q_OBJECT
private slots:
    void clippedWeightsAgainstCentralDifferences()
    {
        Dense w = randomDense(4, 6, "w");
        const Dense toValue = randomDense(4, 6, "slope");
        ClipLogits logits{{0.9, 1.4, 2.0, 0.7}, {1.1, 0.8, 1.9, 2.5}};
        const NumberGrid grid = specOf(kWeight, Role::Weight).grid;
        const auto clipped = clippedMatrix(**makeBackend("reference"), w, grid, &logits, "w");
        QVERIFY(clipped.has_value());
        const Frozen frozen(w, *clipped);
        QVERIFY((frozen(w, logits) - clipped->value).cwiseAbs().maxCoeff() < 1e-12); // the frozen function is the quantizer here
        QVERIFY(frozen.saturated() > 0);
        ClipLogits slopes{std::vector<double>(4, 0.0), std::vector<double>(4, 0.0)};
        const Dense toW = backThroughClip(w, *clipped, grid, &logits, toValue, &slopes);
        const auto loss = [&] { return frozen(w, logits).cwiseProduct(toValue).sum(); };
        for (std::size_t n = 0; n < 4; ++n) {
            QVERIFY(isClose(slopes.high[n], centralDifference(logits.high[n], loss), 1));
            QVERIFY(isClose(slopes.low[n], centralDifference(logits.low[n], loss), 1));
        }
        for (Eigen::Index i = 0; i < w.size(); ++i)
            QVERIFY(isClose(toW.data()[i], centralDifference(w.data()[i], loss), 1));
    }

    void everyNumberOfOmniquantAgainstCentralDifferences_data()
    {
        QTest::addColumn<bool>("logScale");
        QTest::newRow("log s") << true;
        QTest::newRow("s") << false;
    }
    void everyNumberOfOmniquantAgainstCentralDifferences()
    {
        QFETCH(bool, logScale);
        const MatrixD x = randomMatrix(5, 6, "x"), w = randomMatrix(4, 6, "w");
        const auto fit = fitOf(x, {w}, "int4:token:asym:dialect=free", kWeight);
        OmniState state = someState();
        if (!logScale)
            for (double &s : state.scale)
                s = std::exp(s);
        const OmniLayer layer(fit->input, x, {.clip = true, .scale = true, .shift = true, .logScale = logScale});
        const auto slopes = layer.slopes(state, 0, 5);
        QVERIFY(slopes.has_value());

        const Dense dx = eigenMatrix(x), dw = eigenMatrix(w), y = dx * dw.transpose();
        const auto sides = [&](const OmniState &at) {
            Eigen::VectorXd s(6), c(6);
            for (Eigen::Index k = 0; k < 6; ++k) {
                s(k) = logScale ? std::exp(at.scale[std::size_t(k)]) : at.scale[std::size_t(k)];
                c(k) = at.shift[std::size_t(k)];
            }
            return std::tuple<Dense, Dense, Eigen::VectorXd>((dx.rowwise() - c.transpose()) * s.cwiseInverse().asDiagonal(), dw * s.asDiagonal(), c);
        };
        const auto [x0, w0, c0] = sides(state);
        const Backend &backend = *fit->input.backend;
        const auto xq = clippedMatrix(backend, x0, fit->input.specs.act.grid, nullptr, "x");
        const auto wq = clippedMatrix(backend, w0, fit->input.specs.weight.grid, &state.clips[0], "w");
        QVERIFY(xq.has_value() && wq.has_value());
        const Dense rounding = xq->value - x0; // passed straight: X' plus a constant
        const Frozen frozen(w0, *wq);
        const auto loss = [&] {
            const auto [xs, ws, c] = sides(state);
            Dense error = (xs + rounding) * frozen(ws, state.clips[0]).transpose() - y;
            error.rowwise() += (dw * c).transpose();
            return error.squaredNorm() / double(error.size());
        };
        const auto check = [&](std::vector<double> &values, const std::vector<double> &along) {
            for (std::size_t i = 0; i < values.size(); ++i)
                if (!isClose(along[i], centralDifference(values[i], loss), 0.1))
                    return false;
            return true;
        };
        QVERIFY(check(state.scale, slopes->scale));
        QVERIFY(check(state.shift, slopes->shift));
        QVERIFY(check(state.clips[0].high, slopes->clips[0].high));
        QVERIFY(check(state.clips[0].low, slopes->clips[0].low));
    }

    // The quantizers of flatquant and those of omniquant, checked above, give the same slopes.
    void bothStraightThroughRulesAgree()
    {
        const MatrixD x = randomMatrix(5, 6, "x"), w = randomMatrix(4, 6, "w");
        const auto fit = fitOf(x, {w}, "int4:token:asym:dialect=free", kWeight);
        const Dense dx = eigenMatrix(x), dw = eigenMatrix(w), y = randomDense(5, 4, "y");
        const ClipLogits logits{{0.9, 1.4, 2.0, 0.7}, {1.1, 0.8, 1.9, 2.5}};
        learned::LearnedClips clips;
        clips.weights = {logits.low, logits.high};
        const auto slopes = learned::LayerError(fit->input)(dx, dw, y, clips);
        QVERIFY(slopes.has_value());
        const NumberGrid &actGrid = fit->input.specs.act.grid, &weightGrid = fit->input.specs.weight.grid;
        const auto xq = clippedMatrix(*fit->input.backend, dx, actGrid, nullptr, "x");
        const auto wq = clippedMatrix(*fit->input.backend, dw, weightGrid, &logits, "w");
        QVERIFY(xq.has_value() && wq.has_value());
        const Dense error = 2.0 / 20 * (xq->value * wq->value.transpose() - y);
        ClipLogits along{std::vector<double>(4, 0.0), std::vector<double>(4, 0.0)};
        const Dense toW = backThroughClip(dw, *wq, weightGrid, &logits, error.transpose() * xq->value, &along);
        const Dense toX = backThroughClip(dx, *xq, actGrid, nullptr, error * wq->value, nullptr);
        QVERIFY((slopes->toX - toX).cwiseAbs().maxCoeff() < 1e-12);
        QVERIFY((slopes->toW - toW).cwiseAbs().maxCoeff() < 1e-12);
        for (std::size_t n = 0; n < 4; ++n) {
            QVERIFY(std::abs(slopes->clips.weights.high[n] - along.high[n]) < 1e-12);
            QVERIFY(std::abs(slopes->clips.weights.low[n] - along.low[n]) < 1e-12);
        }
    }

    // rotation.md 6.1
    void kroneckerTrace()
    {
        const auto factor = [](const MatrixD &m, const MatrixD &inverse) { return learned::Factor{eigenMatrix(m), eigenMatrix(inverse)}; };
        const auto first = factor(matrixOf({{1, 2}, {0, 1}}), matrixOf({{1, -2}, {0, 1}}));
        const auto second = factor(matrixOf({{1, 0, 1}, {0, 2, 0}, {1, 0, 0}}), matrixOf({{0, 0, 1}, {0, .5, 0}, {1, 0, -1}}));
        const Dense x = learned::kroneckerActivations(eigenMatrix(matrixOf({{1, 2, 3, 4, 5, 6}})), first, second);
        const Dense w = learned::kroneckerWeights(eigenMatrix(matrixOf({{1, -1, 2, 0, 1, 1}})), first, second);
        QCOMPARE(x, eigenMatrix(matrixOf({{4, 4, 1, 18, 18, 6}})));
        QCOMPARE(w, eigenMatrix(matrixOf({{0, -1.5, 1, 1, .5, -1}})));
        QCOMPARE(x.row(0).dot(w.row(0)), 16.0);
    }

    // rotation.md 6.6: both factors are seen through their inverses too.
    void kroneckerSlopesAgainstCentralDifferences()
    {
        const Dense x = randomDense(5, 6, "x"), w = randomDense(4, 6, "w"), toX = randomDense(5, 6, "gx"), toW = randomDense(4, 6, "gw");
        learned::Factor first{randomDense(2, 2, "p1"), {}}, second{randomDense(3, 3, "p2"), {}};
        const auto invert = [&] {
            first.inverse = Eigen::Matrix2d(first.matrix).inverse();
            second.inverse = Eigen::Matrix3d(second.matrix).inverse();
        };
        invert();
        const auto slopes = learned::kroneckerSlopes(x, w, first, second, toX, toW);
        Dense xs = x, ws = w;
        const auto loss = [&] {
            invert();
            return learned::kroneckerActivations(xs, first, second).cwiseProduct(toX).sum() + learned::kroneckerWeights(ws, first, second).cwiseProduct(toW).sum();
        };
        const auto check = [&](Dense &values, const Dense &along) {
            for (Eigen::Index i = 0; i < values.size(); ++i)
                if (!isClose(along.data()[i], centralDifference(values.data()[i], loss), 10))
                    return false;
            return true;
        };
        QVERIFY(check(first.matrix, slopes.first));
        QVERIFY(check(second.matrix, slopes.second));
        QVERIFY(check(xs, slopes.toX));
        QVERIFY(check(ws, slopes.toW));
    }
};

QTEST_GUILESS_MAIN(TestLearnedGradients)
#include "tst_learned_gradients.moc"
