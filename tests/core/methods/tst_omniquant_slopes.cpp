// Slopes of OmniQuant: the hand-checked numbers of one row, and central differences of an independent forward whose codes, zero
// points and saturated elements stay as they were (that is what "straight through the rounding" means).
#include <QtTest>

#include <algorithm>
#include <cmath>

#include "core/methods/omniquant_layer.h"
#include "tests/support/fit_inputs.h"
#include "tests/support/matrices.h"

using namespace planish;
using namespace planish::test;

namespace {

/// One element as the rounding left it.
struct Held {
    double offset = 0, code = 0; ///< rne(u/h) - u/h, and code - zero point
    bool saturated = false;
};

/// A matrix through a 4-bit quantizer with shares of `width` columns, in plain loops. `held` empty: rounds and fills it.
MatrixD quantized(const MatrixD &a, std::size_t width, bool asymmetric, const ClipLogits *logits, std::vector<Held> &held)
{
    const bool rounds = held.empty();
    held.resize(a.size());
    MatrixD out(a.rows(), a.cols());
    std::size_t share = 0;
    for (std::size_t n = 0; n < a.rows(); ++n) {
        for (std::size_t from = 0; from < a.cols(); from += width, ++share) {
            const auto [least, most] =
                std::minmax_element(a.row(n).begin() + std::ptrdiff_t(from), a.row(n).begin() + std::ptrdiff_t(from + width));
            const double hi = *most * (logits ? 1 / (1 + std::exp(-logits->high[share])) : 1);
            const double lo = *least * (logits ? 1 / (1 + std::exp(-logits->low[share])) : 1);
            const double h = asymmetric ? (hi - lo) / 15 : std::max(std::abs(hi), std::abs(lo)) / 7;
            const double zero = asymmetric ? std::nearbyint(-lo / h) : 0, first = asymmetric ? -zero : -7,
                         last = asymmetric ? 15 - zero : 7;
            for (std::size_t k = from; k < from + width; ++k) {
                Held &one = held[n * a.cols() + k];
                if (rounds) {
                    const double rounded = std::nearbyint(a(n, k) / h);
                    one = {rounded - a(n, k) / h, std::clamp(rounded, first, last), rounded < first || rounded > last};
                }
                out(n, k) = one.saturated ? h * one.code : a(n, k) + h * one.offset;
            }
        }
    }
    return out;
}

/// The layer error of a state, written from diagonal.md 9.1 and 9.2.
class Forward {
public:
    Forward(const MatrixD &x, const std::vector<MatrixD> &weights, const OmniOptions &options, bool asymmetric, const Ties &ties)
        : m_x(x), m_w(weights), m_options(options), m_asymmetric(asymmetric), m_ties(ties), m_heldW(weights.size())
    {
    }

    double operator()(const OmniState &state)
    {
        MatrixD x(m_x.rows(), m_x.cols());
        for (std::size_t m = 0; m < x.rows(); ++m)
            for (std::size_t k = 0; k < x.cols(); ++k)
                x(m, k) = (m_x(m, k) - shift(state, k)) / scale(state, k);
        const MatrixD xq = quantizedX(x);
        double sum = 0, outputs = 0;
        for (std::size_t i = 0; i < m_w.size(); ++i) {
            sum += squaredError(state, xq, i);
            outputs += double(m_w[i].rows());
        }
        return sum / (double(x.rows()) * outputs);
    }

private:
    std::size_t setOf(std::size_t k) const { return m_ties.set.empty() ? k : std::size_t(m_ties.set[k]); }
    double scale(const OmniState &state, std::size_t k) const
    {
        return m_options.logScale ? std::exp(state.scale[setOf(k)]) : state.scale[setOf(k)];
    }
    double shift(const OmniState &state, std::size_t k) const { return m_options.shift ? state.shift[setOf(k)] : 0; }

    /// With a detached step only the error of the rounding stays what it was.
    MatrixD quantizedX(const MatrixD &x)
    {
        if (m_options.activationStep)
            return quantized(x, x.cols(), m_asymmetric, nullptr, m_heldX);
        if (m_error.empty()) {
            const MatrixD q = quantized(x, x.cols(), m_asymmetric, nullptr, m_heldX);
            for (std::size_t j = 0; j < x.size(); ++j)
                m_error.push_back(q.data()[j] - x.data()[j]);
        }
        MatrixD out = x;
        for (std::size_t j = 0; j < out.size(); ++j)
            out.data()[j] += m_error[j];
        return out;
    }

    double squaredError(const OmniState &state, const MatrixD &xq, std::size_t i)
    {
        MatrixD scaled = m_w[i];
        for (std::size_t n = 0; n < scaled.rows(); ++n)
            for (std::size_t k = 0; k < scaled.cols(); ++k)
                scaled(n, k) *= scale(state, k);
        const MatrixD wq = quantized(scaled, 4, m_asymmetric, &state.clips[i], m_heldW[i]);
        double sum = 0;
        for (std::size_t m = 0; m < xq.rows(); ++m) {
            for (std::size_t n = 0; n < wq.rows(); ++n) {
                double error = 0;
                for (std::size_t k = 0; k < wq.cols(); ++k)
                    error += xq(m, k) * wq(n, k) + shift(state, k) * m_w[i](n, k) - m_x(m, k) * m_w[i](n, k);
                sum += error * error;
            }
        }
        return sum;
    }

    MatrixD m_x;
    std::vector<MatrixD> m_w;
    OmniOptions m_options;
    bool m_asymmetric;
    Ties m_ties;
    std::vector<Held> m_heldX;
    std::vector<std::vector<Held>> m_heldW;
    std::vector<double> m_error;
};

/// Largest |analytic - central difference| of one kind of number, over the largest of them.
double worstSlope(Forward &forward, OmniState &state, std::vector<double> &values, const std::vector<double> &slopes)
{
    double worst = 0, largest = 1e-12;
    for (std::size_t j = 0; j < values.size(); ++j) {
        const double at = values[j], h = 1e-5;
        values[j] = at + h;
        const double above = forward(state);
        values[j] = at - h;
        const double below = forward(state);
        values[j] = at;
        worst = std::max(worst, std::abs(slopes[j] - (above - below) / (2 * h)));
        largest = std::max(largest, std::abs(slopes[j]));
    }
    return worst / largest;
}

OmniState stateOf(std::size_t sets, const std::vector<MatrixD> &weights, bool logScale)
{
    OmniState state;
    for (std::size_t k = 0; k < sets; ++k) {
        state.scale.push_back(logScale ? 0.1 * double(k) - 0.3 : 0.7 + 0.1 * double(k));
        state.shift.push_back(0.05 * double(k) - 0.1);
    }
    for (const MatrixD &w : weights) {
        ClipLogits logits;
        for (std::size_t j = 0; j < w.rows() * 2; ++j) {
            logits.high.push_back(1.0 + 0.2 * double(j % 5));
            logits.low.push_back(1.5 - 0.1 * double(j % 7));
        }
        state.clips.push_back(logits);
    }
    return state;
}

} // namespace

class TestOmniquantSlopes : public QObject {
    Q_OBJECT
private slots:
    void oneRowHasTheHandCheckedSlopes()
    {
        const MatrixD row = matrixOf({{-.9, -.2, .1, .35, .6, 1.2}});
        const Dense w = eigenMatrix(row);
        const NumberGrid grid = specOf("int3:row:asym:dialect=free", Role::Weight).grid;
        const auto backend = *makeBackend("reference");
        const ClipLogits start{{4.0}, {4.0}};
        const auto clipped = clippedMatrix(*backend, w, grid, &start, "w");
        QVERIFY(clipped.has_value());
        QVERIFY(std::abs(clipped->steps[0] - .294604) < 1e-6);
        const double expected[] = {-.883812, -.294604, 0, .294604, .589208, 1.178417};
        for (int k = 0; k < 6; ++k)
            QVERIFY(std::abs(clipped->value(0, k) - expected[k]) < 1e-6);
        QVERIFY(std::abs((clipped->value - w).squaredNorm() / 6 - .003810) < 1e-6);
        ClipLogits slopes{{0.0}, {0.0}};
        backThroughClip(w, *clipped, grid, &start, (clipped->value - w) * (2.0 / 6), &slopes);
        QVERIFY(std::abs(slopes.high[0] - 7.83273e-5) < 1e-9);
        QVERIFY(std::abs(slopes.low[0] - 5.87455e-5) < 1e-9);
    }

    void halvingTheUpperEndSaturatesTheLargestWeight()
    {
        const Dense w = eigenMatrix(matrixOf({{-.9, -.2, .1, .35, .6, 1.2}}));
        const ClipLogits half{{0.0}, {4.0}};
        const auto clipped =
            clippedMatrix(**makeBackend("reference"), w, specOf("int3:row:asym:dialect=free", Role::Weight).grid, &half, "w");
        QVERIFY(clipped.has_value());
        QVERIFY(std::abs(clipped->steps[0] - .211973) < 1e-6);
        QVERIFY(std::abs(clipped->value(0, 5) - .635920) < 1e-6);
        QVERIFY(std::abs((clipped->value - w).squaredNorm() / 6 - .056301) < 1e-6);
    }

    void slopesEqualCentralDifferences_data()
    {
        QTest::addColumn<bool>("asymmetric");
        QTest::addColumn<bool>("activationStep");
        QTest::addColumn<bool>("logScale");
        QTest::addColumn<bool>("tied");
        QTest::newRow("detached") << true << false << true << false;
        QTest::newRow("through the activation step") << true << true << true << false;
        QTest::newRow("s itself") << true << false << false << false;
        QTest::newRow("tied channels") << true << true << true << true;
        QTest::newRow("symmetric") << false << true << true << false;
    }

    void slopesEqualCentralDifferences()
    {
        QFETCH(bool, asymmetric);
        QFETCH(bool, activationStep);
        QFETCH(bool, logScale);
        QFETCH(bool, tied);
        const MatrixD x = randomMatrix(7, 8, "x");
        const std::vector<MatrixD> weights{randomMatrix(6, 8, "w0"), randomMatrix(5, 8, "w1")};
        auto fit = fitOf(x, weights, asymmetric ? "int4:token:asym:dialect=free" : "int4:token",
                         asymmetric ? "int4:group4:asym:dialect=free" : "int4:group4");
        if (tied)
            fit->input.ties = {"gqa", {0, 1, 2, 3, 0, 1, 2, 3}, 4};
        OmniOptions options;
        options.shift = true;
        options.logScale = logScale;
        options.activationStep = activationStep;
        OmniState state = stateOf(tied ? 4 : 8, weights, logScale);
        const auto slopes = OmniLayer(fit->input, x, options).slopes(state, 0, x.rows());
        QVERIFY(slopes.has_value());
        Forward forward(x, weights, options, asymmetric, fit->input.ties);
        forward(state);
        QVERIFY(worstSlope(forward, state, state.scale, slopes->scale) < 1e-6);
        QVERIFY(worstSlope(forward, state, state.shift, slopes->shift) < 1e-6);
        for (std::size_t i = 0; i < weights.size(); ++i) {
            QVERIFY(worstSlope(forward, state, state.clips[i].high, slopes->clips[i].high) < 1e-6);
            QVERIFY(worstSlope(forward, state, state.clips[i].low, slopes->clips[i].low) < 1e-6);
        }
    }
};

QTEST_GUILESS_MAIN(TestOmniquantSlopes)
#include "tst_omniquant_slopes.moc"
