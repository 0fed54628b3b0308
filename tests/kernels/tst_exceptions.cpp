// Columns kept exact (LLM.int8), elements ignored by the step (bitsandbytes) and clip bounds (AWQ): diagonal.md 4 and 6.2.
#include <QtTest>

#include "tests/support/quantized.h"

using namespace planish;
using planish::test::allNear;
using planish::test::matrixOf;

namespace {
const MatrixD kX = matrixOf({{1, -1.984375, 60, .3}, {1.984375, 1, -50, -.9}});
const MatrixD kW = matrixOf({{.5, .25, -.3, .9921875}, {-.9921875, .7, .2, -.5}});
} // namespace

class TestExceptions : public QObject {
    Q_OBJECT
private slots:
    void init() { m_backend = test::backendNamed("cpu"); }

    void paperVariantFollowsTheTrace()
    {
        ExceptionMask mask;
        mask.columns = {0, 0, 1, 0};
        const auto x = quantize(kX, &mask), w = quantize(kW, &mask);
        QVERIFY(allNear(x.result.steps, {1.0 / 64, 1.0 / 64}, 0.0));
        QVERIFY(allNear(w.result.steps, {1.0 / 128, 1.0 / 128}, 0.0));
        QCOMPARE(test::codesOf(x), (std::vector<int>{64, -127, 0, 19, 127, 64, 0, -58}));
        QCOMPARE(x.values(0, 2), 60.0);
        QVERIFY(allNear(outputs(x, w), {-17.701538, 9.464111, 15.343018, -10.812622}, 1e-6));
    }
    void bitsandbytesVariantFollowsTheTrace()
    {
        ExceptionMask x, w;
        x.columns = w.columns = {0, 0, 1, 0};
        x.stepIgnoresElements = true;
        x.threshold = 6.0;
        w.keepExact = false;
        const auto qx = quantize(kX, &x), qw = quantize(kW, &w);
        QCOMPARE(qw.result.codes(0, 2), std::int16_t(-38));
        QCOMPARE(qw.result.codes(1, 2), std::int16_t(26));
        QVERIFY(allNear(outputs(qx, qw), {-17.514038, 9.651611, 15.186768, -10.968872}, 1e-6));
    }
    void stepIgnoresElementsNotColumns()
    {
        // [[.5,5.9,.25],[1,7,-.5]]: row 0 keeps 5.9 although its column is exact; leaving out the column gives .5.
        ExceptionMask mask;
        mask.columns = {0, 1, 0};
        const MatrixD x = matrixOf({{.5, 5.9, .25}, {1, 7, -.5}});
        QVERIFY(allNear(quantize(x, &mask).result.steps, {.5 / 127, 1.0 / 127}, 1e-16));
        mask.stepIgnoresElements = true;
        mask.threshold = 6.0;
        QVERIFY(allNear(quantize(x, &mask).result.steps, {5.9 / 127, 1.0 / 127}, 1e-16));
    }
    void setsMayDifferByUnit()
    {
        ExceptionMask mask;
        mask.rowUnit = {0, 1, -1};
        mask.unitColumns = {{1, 0}, {0, 1}};
        const auto back = quantize(matrixOf({{60, 1}, {1, 60}, {60, 1}}), &mask);
        QVERIFY(allNear(back.result.steps, {1.0 / 127, 1.0 / 127, 60.0 / 127}, 1e-15));
        QCOMPARE(back.values(0, 0), 60.0);
        QCOMPARE(back.values(1, 1), 60.0);
    }
    void exactColumnsAddNoErrorAndAreCounted()
    {
        ExceptionMask mask;
        mask.columns = {1, 1, 1, 1};
        const auto back = quantize(kX, &mask);
        QCOMPARE(back.result.counts.squaredError, 0.0);
        QCOMPARE(back.result.counts.elements, std::size_t(8));
        QVERIFY(back.result.counts.energy > 6000.0);
        QCOMPARE(back.values, kX);
    }
    void boundsClampBeforeTheStep()
    {
        QuantizeRequest request{.grid = {.format = NumberFormat::Int4}};
        const std::vector<double> bounds = {3.5};
        request.clampBound = &bounds;
        const auto back = test::quantizeOn(*m_backend, matrixOf({{1, -7, 3.5}}), request);
        QVERIFY(allNear(back.result.steps, {.5}, 0.0));
        QVERIFY(allNear(back.values.values(), {1, -3.5, 3.5}, 0.0));
        QCOMPARE(back.result.counts.saturated, std::size_t(1));
        QCOMPARE(back.result.counts.squaredError, 12.25);
    }
    void wrongMaskLengthIsRefused()
    {
        ExceptionMask mask;
        mask.columns = {1};
        QuantizeRequest request{.grid = {.format = NumberFormat::Int8}};
        request.exceptions = &mask;
        QVERIFY(!m_backend->quantize(**m_backend->upload(kX.view()), request));
    }

private:
    test::QuantizedBack quantize(const MatrixD &x, const ExceptionMask *mask)
    {
        QuantizeRequest request{.grid = {.format = NumberFormat::Int8}};
        request.exceptions = mask;
        return test::quantizeOn(*m_backend, x, request);
    }
    std::vector<double> outputs(const test::QuantizedBack &x, const test::QuantizedBack &w)
    {
        const auto y = m_backend->download(**m_backend->product(*x.result.reconstructed, *w.result.reconstructed));
        return {y->values().begin(), y->values().end()};
    }

    std::shared_ptr<const Backend> m_backend;
};

QTEST_GUILESS_MAIN(TestExceptions)
#include "tst_exceptions.moc"
