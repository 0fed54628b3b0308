// Failure lab, wrong numbers: saturating products, underflowing scales, rotations that hurt, zero points out of reach.
#include <QtTest>

#include "kernels/cpu/self_test.h"
#include "tests/support/fit_inputs.h"
#include "tests/support/quantized.h"

using namespace planish;
using namespace planish::test;

class TestLabNumbers : public QObject {
    Q_OBJECT
private slots:
    void int8SaturatesWithoutVnni()
    {
        // What pairs summed in 16 bits make of the largest codes, and what every path of ours makes of them.
        Matrix<std::int8_t> a(64, 256), b(64, 256);
        std::fill_n(a.data(), a.size(), std::int8_t{127});
        std::fill_n(b.data(), b.size(), std::int8_t{127});
        const std::int32_t pair = 255 * 127 + 255 * 127; // u8 x s8 as vpmaddubsw sees it
        QVERIFY(pair > std::numeric_limits<std::int16_t>::max());
        for (const auto path : {cpu::selfTestInt8Gemm().path, cpu::IntegerPath::Float32}) {
            const auto product = cpu::integerProduct(std::as_const(a).view(), std::as_const(b).view(), path);
            QVERIFY(product.has_value());
            for (std::size_t m = 0; m < 64; ++m)
                for (std::size_t n = 0; n < 64; ++n)
                    QCOMPARE((*product)(m, n), std::int32_t{256 * 127 * 127});
        }
        QVERIFY(!cpu::selfTestInt8Gemm().sentence.empty()); // the self test says which path this machine takes
    }

    void blockScaleUnderflows()
    {
        MatrixD x(1, 32);
        x(0, 0) = 3000.0;
        x(0, 16) = .002; // .002 / (6 g) is far below half of 2^-9
        for (const char *key : {"reference", "cpu"}) {
            const auto back = quantizeOn(*backendNamed(key), x, {.grid = {.format = NumberFormat::NvFp4}});
            QCOMPARE(back.result.counts.scaleUnderflow, std::size_t(1));
            QCOMPARE(back.result.steps.at(1), 0.001953125 * back.result.tensorScale);
            QVERIFY(std::isfinite(back.values(0, 16)));
        }
        x(0, 16) = 1000.0;
        QCOMPARE(
            quantizeOn(*backendNamed("reference"), x, {.grid = {.format = NumberFormat::NvFp4}}).result.counts.scaleUnderflow,
            std::size_t(0));
    }

    void hadamardHurtsNvfp4()
    {
        // One spike in 128 channels: blocks of 16 already isolate it, a full-width rotation spreads it over all of them.
        MatrixD x(32, 128);
        for (std::size_t m = 0; m < x.rows(); ++m)
            for (std::size_t k = 0; k < x.cols(); ++k)
                x(m, k) = k == 5 ? 60.0 + static_cast<double>(m)
                                 : std::sin(0.7 * static_cast<double>(m) + 1.3 * static_cast<double>(k * k));
        MatrixD w(16, 128);
        for (std::size_t n = 0; n < w.rows(); ++n)
            for (std::size_t k = 0; k < w.cols(); ++k)
                w(n, k) = k == 5 ? 0.02 : std::cos(0.3 * static_cast<double>(n) + 0.9 * static_cast<double>(k * k));
        auto fit = fitOf(x, {w}, "nvfp4", "none");
        const auto rotation = fitMethod(*fit, "hadamard", {"signs=none"});
        QVERIFY2(rotation.has_value(), rotation ? "" : toText(rotation.error()).c_str());
        const auto error = [&](const MatrixD &values, const MatrixD &weights, const MatrixD &reference) {
            const auto back = quantizeOn(*backendNamed("reference"), values, {.grid = {.format = NumberFormat::NvFp4}});
            double square = 0, norm = 0;
            for (std::size_t m = 0; m < values.rows(); ++m)
                for (std::size_t n = 0; n < weights.rows(); ++n) {
                    double sum = 0;
                    for (std::size_t k = 0; k < values.cols(); ++k)
                        sum += back.values(m, k) * weights(n, k);
                    square += (sum - reference(m, n)) * (sum - reference(m, n));
                    norm += reference(m, n) * reference(m, n);
                }
            return std::sqrt(square / norm);
        };
        MatrixD y(x.rows(), w.rows());
        for (std::size_t m = 0; m < y.rows(); ++m)
            for (std::size_t n = 0; n < y.cols(); ++n)
                for (std::size_t k = 0; k < x.cols(); ++k)
                    y(m, n) += x(m, k) * w(n, k);
        const double identity = error(x, w, y);
        const double rotated =
            error(applyToActivations(rotation->input, x.view()), *applyToWeights(rotation->input, w.view()), y);
        QVERIFY2(identity < rotated, qPrintable(QString("identity %1, rotated %2").arg(identity).arg(rotated)));
    }

    void rawZeroPointOnOneSidedGroup()
    {
        NumberGrid grid;
        grid.format = NumberFormat::Int4;
        const MatrixD x = matrixOf({{1, 1.25, 1.5, 2}});
        grid.dialect = Dialect::Raw;
        const auto raw = quantizeOn(*backendNamed("reference"), x, {.grid = grid});
        QVERIFY(allNear(raw.values.values(), {1, 1, 1, 1}, 1e-12));
        QCOMPARE(raw.result.counts.saturated, std::size_t(3)); // a fraction of .75
        grid.dialect = Dialect::Zero;
        const auto zero = quantizeOn(*backendNamed("reference"), x, {.grid = grid});
        QVERIFY(allNear(zero.values.values(), {1.066667, 1.2, 1.466667, 2}, 1e-6));
        QCOMPARE(zero.result.counts.saturated, std::size_t(0));
    }
};

QTEST_GUILESS_MAIN(TestLabNumbers)
#include "tst_lab_numbers.moc"
