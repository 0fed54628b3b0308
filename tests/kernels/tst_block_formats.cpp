// MX and NVFP4 blocks against the traces of formats.md 4 and the golden blocks.
#include <QtTest>

#include "tests/support/kernel_goldens.h"
#include "tests/support/quantized.h"

using namespace planish;
using planish::test::allNear;
using planish::test::matrixOf;

namespace {
const MatrixD kTrace = matrixOf({{7, -3.4, 1.3, .6, -.2, 5.1, 2.5, -1.75}});

double meanSquaredError(const test::QuantizedBack &back)
{
    return back.result.counts.squaredError / static_cast<double>(back.values.size());
}
} // namespace

class TestBlockFormats : public QObject {
    Q_OBJECT
private slots:
    void initTestCase_data()
    {
        QTest::addColumn<QString>("backend");
        QTest::newRow("reference") << "reference";
        QTest::newRow("cpu") << "cpu";
    }
    void init()
    {
        QFETCH_GLOBAL(QString, backend);
        m_backend = test::backendNamed(backend.toStdString());
    }

    void mxfp4RulesFollowTheTrace()
    {
        const auto at = [this](MxRule rule) { return quantize(kTrace, NumberFormat::MxFp4, rule); };
        const auto floor = at(MxRule::Floor), even = at(MxRule::Even), ceil = at(MxRule::Ceil), thirds = at(MxRule::FourThirds);
        QVERIFY(allNear(floor.values.values(), {6, -3, 1.5, .5, -0.0, 6, 2, -2}, 0.0));
        QVERIFY(std::fabs(meanSquaredError(floor) - .296563) < 1e-6);
        QVERIFY(allNear(even.values.values(), {8, -3, 1, 1, -0.0, 6, 2, -2}, 0.0));
        QVERIFY(std::fabs(meanSquaredError(even) - .321563) < 1e-6);
        QCOMPARE(ceil.values, even.values);
        QVERIFY(allNear(thirds.values.values(), {8, -4, 1.333333, .666667, 0, 5.333333, 2.666667, -2}, 1e-6));
        QVERIFY(std::fabs(meanSquaredError(thirds) - .193785) < 1e-6);
        QCOMPARE(floor.result.steps, std::vector<double>{1.0});
        QCOMPARE(even.result.steps, std::vector<double>{2.0});
    }
    void mxint8FollowsTheTrace()
    {
        const auto back = quantize(kTrace, NumberFormat::MxInt8, MxRule::Floor);
        QCOMPARE(test::codesOf(back), (std::vector<int>{112, -54, 21, 10, -3, 82, 40, -28}));
        QVERIFY(allNear(back.values.values(), {7, -3.375, 1.3125, .625, -.1875, 5.125, 2.5, -1.75}, 0.0));
        QCOMPARE(back.result.steps, std::vector<double>{4.0});
    }
    void nvfp4FollowsTheTrace()
    {
        QuantizeRequest request{.grid = {.format = NumberFormat::NvFp4}};
        request.tensorScaleMax = 20.0;
        const auto back = test::quantizeOn(*m_backend, kTrace, request);
        QVERIFY(std::fabs(back.result.tensorScale - .00744048) < 1e-8);
        QVERIFY(allNear(back.result.steps, {1.190476}, 1e-6));
        QVERIFY(allNear(back.values.values(), {7.142857, -3.571429, 1.190476, .595238, 0, 4.761905, 2.380952, -1.785714}, 1e-6));
        QVERIFY(std::fabs(meanSquaredError(back) - .028946) < 1e-6);
    }
    void fourOverSixKeepsTheSmallerError()
    {
        QuantizeRequest request{.grid = {.format = NumberFormat::NvFp4, .fourOverSix = true}};
        request.tensorScaleMax = 20.0;
        const auto first = test::quantizeOn(*m_backend, kTrace, request);
        QVERIFY(std::fabs(meanSquaredError(first) - .045174) < 1e-6);
        QVERIFY(allNear(first.result.steps, {1.666667}, 1e-6));
        const auto second = test::quantizeOn(*m_backend, matrixOf({{6.9, 5, -4.7, 4.9, .1, -5.2, 4.6, .3}}), request);
        QVERIFY(std::fabs(meanSquaredError(second) - .056806) < 1e-6);
        QVERIFY(allNear(second.values.values(), {6.666667, 5, -5, 5, 0, -5, 5, 0}, 1e-6));
    }
    void underflowingBlockScaleIsRaisedAndCounted()
    {
        MatrixD x(1, 32);
        x(0, 0) = 3000.0;
        x(0, 16) = .002;
        const auto back = test::quantizeOn(*m_backend, x, {.grid = {.format = NumberFormat::NvFp4}});
        QCOMPARE(back.result.counts.scaleUnderflow, std::size_t(1));
        QCOMPARE(back.result.steps[1], 0.001953125 * back.result.tensorScale);
    }
    void exponentComesFromTheBitsNotALogarithm()
    {
        // 7.9999995 has exponent 2; a float32 log2 says 3 (formats.md 4.1).
        const auto back = quantize(matrixOf({{static_cast<double>(7.9999995f), 1}}), NumberFormat::MxFp4, MxRule::Floor);
        QCOMPARE(back.result.steps, std::vector<double>{1.0});
    }
    void scaleBeyondItsByteIsAnError()
    {
        const MatrixD x = matrixOf({{1e300, 1}});
        QVERIFY(!m_backend->quantize(**m_backend->upload(x.view()), {.grid = {.format = NumberFormat::MxFp4}}));
    }
    void goldenBlocksAgree()
    {
        for (const auto &entry : m_goldens["blocks"]) {
            const std::string format = entry.at("format"), rule = entry.at("rule");
            QuantizeRequest request{.grid = {.format = test::formatNamed(format)}};
            if (isBlockFormat(request.grid.format) && format != "nvfp4") {
                request.grid.mxRule = test::ruleNamed(rule);
            }
            request.grid.sharing = rule == "tensor" ? Sharing::Tensor : Sharing::Row;
            request.grid.fourOverSix = rule == "four_over_six";
            const auto back = test::quantizeOn(*m_backend, m_goldens.matrix(entry.at("input")), request);
            checkCodes(entry, back, test::formatNamed(format));
        }
    }
    void shortTailsAgree()
    {
        for (const auto &entry : m_goldens["tails"]) {
            const NumberGrid grid = test::gridOf(entry);
            const auto back = test::quantizeOn(*m_backend, m_goldens.matrix(entry.at("input")), {.grid = grid});
            checkCodes(entry, back, grid.format);
            const MatrixD expected = m_goldens.matrix(entry.at("dequantized"));
            for (std::size_t i = 0; i < expected.size(); ++i) {
                QVERIFY(std::fabs(back.values.data()[i] - expected.data()[i]) <= 1e-14 * std::fabs(expected.data()[i]));
            }
        }
    }

private:
    test::QuantizedBack quantize(const MatrixD &x, NumberFormat format, MxRule rule)
    {
        return test::quantizeOn(*m_backend, x, {.grid = {.format = format, .mxRule = rule}});
    }
    /// Golden float codes carry the sign bit; ours are signed integers.
    void checkCodes(const nlohmann::json &entry, const test::QuantizedBack &back, NumberFormat format)
    {
        const MatrixD expected = m_goldens.matrix(entry.at("codes"));
        QCOMPARE(back.result.codes.size(), expected.size());
        const FloatFormat *element = elementFormat(format);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const int golden = element ? signedCode(static_cast<std::uint32_t>(expected.data()[i]), *element)
                                       : static_cast<int>(expected.data()[i]);
            QVERIFY2(back.result.codes.data()[i] == golden,
                     qPrintable(QString::fromStdString(entry.at("codes")) +
                                QString(" element %1: %2, expected %3").arg(i).arg(back.result.codes.data()[i]).arg(golden)));
        }
    }

    test::KernelGoldens m_goldens;
    std::shared_ptr<const Backend> m_backend;
};

QTEST_GUILESS_MAIN(TestBlockFormats)
#include "tst_block_formats.moc"
