// Integer dialects, clips and granularities against the traces of diagonal.md 2 and formats.md 2.
#include <QtTest>

#include "tests/support/quantized.h"

using namespace planish;
using planish::test::allNear;
using planish::test::matrixOf;

namespace {

NumberGrid gridWith(NumberFormat format, Dialect dialect)
{
    NumberGrid grid;
    grid.format = format;
    grid.dialect = dialect;
    return grid;
}

struct Trace {
    Dialect dialect;
    double step, zero;
    std::vector<int> codes;
    std::vector<double> values;
};

} // namespace

class TestDialects : public QObject {
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
        QVERIFY(m_backend);
    }

    void halvesRoundToEven()
    {
        QuantizeRequest request{.grid = gridWith(NumberFormat::Int8, Dialect::Narrow)};
        const FixedRanges one{{-127.0, 127.0}};
        request.ranges = &one;
        const auto back = quantize(matrixOf({{.5, 1.5, 2.5, -.5, -2.5}}), request);
        QCOMPARE(test::codesOf(back), (std::vector<int>{0, 2, 2, 0, -2}));
    }
    void dialectsFollowTheTrace()
    {
        const std::vector<Trace> traces = {
            {Dialect::Narrow, .25, 0, {-4, -2, 0, 0, 2, 7}, {-1, -.5, 0, 0, .5, 1.75}},
            {Dialect::Half, .233333, 0, {-4, -2, 0, 1, 2, 7}, {-.933333, -.466667, 0, .233333, .466667, 1.633333}},
            {Dialect::Signed, -.21875, 0, {5, 2, 0, -1, -2, -8}, {-1.09375, -.4375, 0, .21875, .4375, 1.75}},
            {Dialect::Zero, .183333, 5, {0, 3, 5, 6, 8, 15}, {-.916667, -.366667, 0, .183333, .55, 1.833333}}};
        for (const Trace &trace : traces) {
            check(matrixOf({{-1, -.375, 0, .125, .5, 1.75}}), trace);
        }
    }
    void mixedHalfZeroFollowFormatsTrace()
    {
        const MatrixD x = matrixOf({{-1.2, .3, .9, 2.1}});
        check(x, {Dialect::Mixed, .3, 0, {-4, 1, 3, 7}, {-1.2, .3, .9, 2.1}});
        check(x, {Dialect::Half, .28, 0, {-4, 1, 3, 7}, {-1.12, .28, .84, 1.96}});
        check(x, {Dialect::Zero, .22, 5, {0, 6, 9, 15}, {-1.1, .22, .88, 2.2}});
    }
    void halfDialectIsNotOdd()
    {
        const auto back =
            quantize(matrixOf({{1, .375, 0, -.125, -.5, -1.75}}), {.grid = gridWith(NumberFormat::Int4, Dialect::Half)});
        QCOMPARE(test::codesOf(back), (std::vector<int>{4, 2, 0, -1, -2, -8}));
    }
    void rawDialectDestroysOneSidedGroups()
    {
        const MatrixD x = matrixOf({{1, 1.25, 1.5, 2}});
        check(x, {Dialect::Raw, .066667, 0, {15, 15, 15, 15}, {1, 1, 1, 1}});
        check(x, {Dialect::Zero, .133333, 0, {8, 9, 11, 15}, {1.066667, 1.2, 1.466667, 2}});
        check(x, {Dialect::Free, .066667, -15, {0, 4, 7, 15}, {1, 1.266667, 1.466667, 2}});
    }
    void offsetDialectReachesOneMoreAbove()
    {
        const FixedRanges range{{-7.0, 7.0}};
        QuantizeRequest request{.grid = gridWith(NumberFormat::Int4, Dialect::Offset)};
        request.ranges = &range;
        const auto back = quantize(matrixOf({{-9, -8, 7, 8, 9}}), request);
        QCOMPARE(test::codesOf(back), (std::vector<int>{-7, -7, 7, 8, 8}));
        QCOMPARE(back.result.counts.saturated, std::size_t(3));
    }
    void granularitiesFollowTheTrace()
    {
        const MatrixD x = matrixOf({{.5, -.875, 14, .25}, {.875, .25, -7, -.4375}});
        NumberGrid grid = gridWith(NumberFormat::Int4, Dialect::Narrow);
        const auto valuesFor = [&](Sharing sharing, std::size_t group) {
            grid.sharing = sharing;
            grid.group = group;
            return quantize(x, {.grid = grid}).values;
        };
        QCOMPARE(valuesFor(Sharing::Tensor, 0), matrixOf({{0, 0, 14, 0}, {0, 0, -8, 0}}));
        QCOMPARE(valuesFor(Sharing::Row, 0), matrixOf({{0, 0, 14, 0}, {1, 0, -7, 0}}));
        QCOMPARE(valuesFor(Sharing::Channel, 0), matrixOf({{.5, -.875, 14, .25}, {.875, .25, -8, -.4375}}));
        QCOMPARE(valuesFor(Sharing::Group, 2), matrixOf({{.5, -.875, 14, 0}, {.875, .25, -7, 0}}));
    }
    void sumIsRoundedOnlyByCompressedTensors()
    {
        NumberGrid grid = gridWith(NumberFormat::Int4, Dialect::Zero);
        const FixedRanges range{{-1.0, 14.0}}; // step 1, zero 1
        QuantizeRequest request{.grid = grid};
        request.ranges = &range;
        const MatrixD x = matrixOf({{.5, 1.5, 2.5}});
        QCOMPARE(test::codesOf(quantize(x, request)), (std::vector<int>{1, 3, 3}));
        request.grid.tool = ToolDialect::CompressedTensors;
        QCOMPARE(test::codesOf(quantize(x, request)), (std::vector<int>{2, 2, 4}));
    }
    void bitsandbytesCastsItsInput()
    {
        NumberGrid grid = gridWith(NumberFormat::Int8, Dialect::Narrow);
        grid.tool = ToolDialect::BitsAndBytes;
        const double between = 1.0 + std::ldexp(1.0, -12); // rounds to 1 in f16
        const auto back = quantize(matrixOf({{between, -.5, .25}}), {.grid = grid});
        QCOMPARE(back.result.steps.front(), 1.0 / 127.0);
        QCOMPARE(test::codesOf(back), (std::vector<int>{127, -64, 32}));
    }
    void zeroShareHasStepOneAndZeroCode()
    {
        for (const Dialect dialect : {Dialect::Narrow, Dialect::Mixed, Dialect::Half, Dialect::Offset, Dialect::Signed,
                                      Dialect::Zero, Dialect::Raw, Dialect::Free}) {
            const auto back = quantize(matrixOf({{0, -0.0, 0}}), {.grid = gridWith(NumberFormat::Int4, dialect)});
            QCOMPARE(back.result.steps, std::vector<double>{1.0});
            QCOMPARE(test::codesOf(back), (std::vector<int>{0, 0, 0}));
            QCOMPARE(back.result.counts.degenerateShares, std::size_t(1));
            QVERIFY(allNear(back.values.values(), {0, 0, 0}, 0.0));
        }
    }
    void clipFollowsTheSquaredErrorTrace()
    {
        // diagonal.md 3.1: b = 3, maximum 8 gives MSE .525694, the best c = 7.6 gives .499028.
        const MatrixD v = matrixOf({{.3, -.7, 1.1, -1.6, 2.2, -.9, .5, 8}});
        NumberGrid grid = gridWith(NumberFormat::Int3, Dialect::Narrow);
        QVERIFY(std::fabs(quantize(v, {.grid = grid}).result.counts.squaredError / 8 - .525694) < 1e-6);
        grid.clip = {ClipKind::Fixed, .95};
        QVERIFY(std::fabs(quantize(v, {.grid = grid}).result.counts.squaredError / 8 - .499028) < 1e-6);
        grid.clip = {ClipKind::Mse, 1.0};
        QVERIFY(quantize(v, {.grid = grid}).result.counts.squaredError / 8 <= .499028);
    }
    void percentileIsTheLinearQuantile()
    {
        // 1..9 and 100: p = .9 linear 18.1 (diagonal.md 3.1).
        NumberGrid grid = gridWith(NumberFormat::Int8, Dialect::Narrow);
        grid.clip = {ClipKind::Percentile, .9};
        const auto back = quantize(matrixOf({{1, 2, 3, 4, 5, 6, 7, 8, 9, 100}}), {.grid = grid});
        QVERIFY(std::fabs(back.result.steps.front() * 127 - 18.1) < 1e-12);
        QCOMPARE(back.result.counts.saturated, std::size_t(1));
    }
    void tailsAreShortPaddedOrRejected()
    {
        NumberGrid grid = gridWith(NumberFormat::Int4, Dialect::Raw);
        grid.sharing = Sharing::Group;
        grid.group = 2;
        const MatrixD x = matrixOf({{1, 2, 3}});
        QCOMPARE(quantize(x, {.grid = grid}).result.counts.degenerateShares, std::size_t(1));
        grid.tail = TailRule::Pad; // the padding zero widens the range of a raw group
        const auto padded = quantize(x, {.grid = grid});
        QVERIFY(allNear(padded.result.steps, {1.0 / 15, 3.0 / 15}, 1e-15));
        grid.tail = TailRule::Reject;
        const auto refused = m_backend->quantize(**m_backend->upload(x.view()), {.grid = grid});
        QVERIFY(!refused && refused.error().message.find("multiple of 2") != std::string::npos);
    }
    void unrepresentableStepIsAnError()
    {
        const MatrixD x = matrixOf({{1e-307, 0}});
        QVERIFY(!m_backend->quantize(**m_backend->upload(x.view()), {.grid = gridWith(NumberFormat::Int8, Dialect::Narrow)}));
        NumberGrid half = gridWith(NumberFormat::Int8, Dialect::Narrow);
        half.stepType = StepType::F16;
        const MatrixD tiny = matrixOf({{1e-7, 0}});
        const auto refused = m_backend->quantize(**m_backend->upload(tiny.view()), {.grid = half});
        QVERIFY(!refused && refused.error().message.find("unrepresentable scale") != std::string::npos);
    }

private:
    test::QuantizedBack quantize(const MatrixD &x, QuantizeRequest request) { return test::quantizeOn(*m_backend, x, request); }

    void check(const MatrixD &x, const Trace &trace)
    {
        const auto back = quantize(x, {.grid = gridWith(NumberFormat::Int4, trace.dialect)});
        QVERIFY(allNear(back.result.steps, {trace.step}, 1e-6));
        QCOMPARE(test::codesOf(back), trace.codes);
        QVERIFY(allNear(back.values.values(), trace.values, 1e-6));
        if (isAsymmetric(trace.dialect)) {
            QCOMPARE(back.result.zeros, std::vector<double>{trace.zero});
        }
    }

    std::shared_ptr<const Backend> m_backend;
};

QTEST_GUILESS_MAIN(TestDialects)
#include "tst_dialects.moc"
