#include <QtTest>

#include <cmath>

#include "core/methods/edge_product.h"
#include "tests/support/fit_inputs.h"
#include "tests/support/matrices.h"

using namespace planish;
using namespace planish::test;

namespace {

std::vector<double> scalesOf(const Expected<Rewrite> &rewrite)
{
    return std::get<ScaleOp>(rewrite->input.operators.front().value).divisor;
}

/// The trace of diagonal.md 5.1: a = [1,4,64,2], w = [1,1,.25,.5].
std::unique_ptr<Fit> traceOf51()
{
    return fitOf(matrixOf({{1, -4, 64, -.5}, {-.5, 3, -20, 2}}), {matrixOf({{1, .5, .25, -.5}, {.5, -1, -.125, .25}})},
                 "int8:token", "int8:row");
}

bool allClose(const std::vector<double> &a, const std::vector<double> &b, double tolerance)
{
    for (std::size_t i = 0; i < b.size(); ++i)
        if (!(std::abs(a[i] - b[i]) <= tolerance * std::abs(b[i])))
            return false;
    return a.size() == b.size();
}

} // namespace

class TestSmoothquant : public QObject {
    Q_OBJECT
private slots:
    void scalesFollowTheTable_data()
    {
        QTest::addColumn<QString>("alpha");
        QTest::addColumn<QList<double>>("scales");
        QTest::newRow("0") << "0" << QList<double>{1, 1, 4, 2};
        QTest::newRow(".5") << "0.5" << QList<double>{1, 2, 16, 2};
        QTest::newRow(".75") << "0.75" << QList<double>{1, 2.8284271247461903, 32, 2};
        QTest::newRow("1") << "1" << QList<double>{1, 4, 64, 2};
    }
    void scalesFollowTheTable()
    {
        QFETCH(QString, alpha);
        QFETCH(QList<double>, scales);
        auto fit = traceOf51();
        const auto rewrite = fitMethod(*fit, "smoothquant", {"alpha=" + alpha.toStdString()});
        QVERIFY(rewrite.has_value());
        QVERIFY(allClose(scalesOf(rewrite), {scales.begin(), scales.end()}, 1e-14));
    }
    void deadChannelKeepsScaleOneInThePaperVariant()
    {
        auto fit = fitOf(matrixOf({{0, 4}, {0, 1}}), {matrixOf({{1, 1}})}, "int8:token", "int8:row");
        const auto rewrite = fitMethod(*fit, "smoothquant");
        QVERIFY(allClose(scalesOf(rewrite), {1, 2}, 1e-14));
        QCOMPARE(rewrite->clamps.at("dead_channels"), std::int64_t{1});
    }
    void deadChannelGetsTheFloorInTheOfficialVariant() // diagonal.md 5.3
    {
        auto fit = fitOf(matrixOf({{0, 4}, {0, 1}}), {matrixOf({{1, 1}})}, "int8:token", "int8:row");
        const auto rewrite = fitMethod(*fit, "smoothquant", {"variant=official"});
        QVERIFY(allClose(scalesOf(rewrite), {1e-5, 2}, 1e-14));
        QCOMPARE(rewrite->clamps.at("scale_floor"), std::int64_t{1});
    }
    void constantChannelBlowsUpUnderTheRangeOfLlmCompressor() // 5.4: max = min = 5 gives range 0, s = 1e-5, x' = 500000
    {
        auto fit = fitOf(matrixOf({{5, 4}, {5, -4}}), {matrixOf({{1, 1}})}, "int8:token", "int8:row");
        const auto rewrite = fitMethod(*fit, "smoothquant", {"variant=llm_compressor"});
        QVERIFY(allClose(scalesOf(rewrite), {1e-5, 2}, 1e-14)); // symmetric channel: a and w both doubled, equal at .5
        QVERIFY(std::abs(applyToActivations(rewrite->input, matrixOf({{5, 4}}).view())(0, 0) - 5e5) < 1e-6);
    }
    void symmetricChannelUnderLlmCompressorIsTwoToTheTwoAlphaMinusOne() // x1.6245 at alpha .85
    {
        auto fit = fitOf(matrixOf({{3, 4}, {-3, -4}}), {matrixOf({{1, .5}})}, "int8:token", "int8:row");
        const auto paper = scalesOf(fitMethod(*fit, "smoothquant", {"alpha=0.85"}));
        const auto compressor = scalesOf(fitMethod(*fit, "smoothquant", {"alpha=0.85", "variant=llm_compressor"}));
        for (std::size_t k = 0; k < paper.size(); ++k)
            QVERIFY(std::abs(compressor[k] / paper[k] - std::pow(2, .7)) < 1e-12);
    }
    void neuralCompressorFloorsTheWeightOnly()
    {
        auto fit = fitOf(matrixOf({{0, 4}, {0, 1}}), {matrixOf({{1, 0}})}, "int8:token", "int8:row");
        const auto rewrite = fitMethod(*fit, "smoothquant", {"variant=neural_compressor"});
        QVERIFY(allClose(scalesOf(rewrite), {1, 2 / std::sqrt(1e-5)}, 1e-12));
        QCOMPARE(rewrite->clamps.at("weight_floor"), std::int64_t{1});
        QCOMPARE(rewrite->clamps.at("dead_channels"), std::int64_t{1});
    }
    void rmsTakesTheRmsOfAllConsumersRows()
    {
        auto fit = fitOf(matrixOf({{3, 1}, {-4, 1}}), {matrixOf({{1, 2}}), matrixOf({{7, 2}})}, "int8:token", "int8:row");
        const auto scales = scalesOf(fitMethod(*fit, "rms_scale", {"alpha=1"}));
        QVERIFY(allClose(scales, {std::sqrt(12.5), 1}, 1e-14));
        const auto weights = scalesOf(fitMethod(*fit, "rms_scale", {"alpha=0"}));
        QVERIFY(allClose(weights, {1 / 5., .5}, 1e-14));
    }
    void tiedChannelsShareOneScaleReducedByMax()
    {
        auto fit = traceOf51();
        fit->input.ties = {"gqa", {0, 1, 0, 1}, 2};
        // a over the sets: max(1,64) = 64, max(4,2) = 4; w: max(1,.25) = 1, max(1,.5) = 1.
        QVERIFY(allClose(scalesOf(fitMethod(*fit, "smoothquant")), {8, 2, 8, 2}, 1e-14));
    }
    void smoothScaleKeepsProduct()
    {
        auto fit = fitOf(randomMatrix(12, 16, "x"), {randomMatrix(5, 16, "w")}, "int8:token", "int8:row");
        const auto rewrite = fitMethod(*fit, "smoothquant", {"alpha=0.7"});
        const MatrixD x = applyToActivations(rewrite->input, fit->input.calibration.x().view());
        const MatrixD w = *applyToWeights(rewrite->input, fit->input.consumers[0].weight->view());
        QVERIFY(relativeDistance(outputs(x, w), outputs(fit->input.calibration.x(), *fit->input.consumers[0].weight)) < 1e-14);
    }
    void searchTriesTheMiddleFirstAndKeepsTheLowestLoss()
    {
        MatrixD x = randomMatrix(24, 16, "x");
        for (std::size_t m = 0; m < x.rows(); ++m)
            x(m, 3) *= 50;
        auto fit = fitOf(x, {randomMatrix(8, 16, "w")}, "int4:token", "int4:row");
        const auto rewrite = fitMethod(*fit, "smoothquant", {"search=output"});
        QVERIFY(rewrite.has_value());
        QCOMPARE(rewrite->log.size(), std::size_t{22});
        QCOMPARE(rewrite->log[0].label, std::string("identity"));
        QCOMPARE(rewrite->log[1].label, std::string("alpha=0.5"));
        QCOMPARE(rewrite->log[2].label, std::string("alpha=0.45")); // equally far: the smaller first
        QCOMPARE(rewrite->log[3].label, std::string("alpha=0.55"));
        double lowest = INFINITY;
        for (const SearchEntry &entry : rewrite->log)
            lowest = std::min(lowest, entry.loss);
        const auto chosen = std::find_if(rewrite->log.begin(), rewrite->log.end(), [](const SearchEntry &e) { return e.chosen; });
        QCOMPARE(chosen->loss, lowest);
        QVERIFY(chosen->loss < rewrite->log[0].loss);
        QCOMPARE(std::get<double>(rewrite->fitted.at("alpha")), chosen->parameter);
    }
    void searchReportsIdentityWhenNothingIsBetter()
    {
        // Exact specs: every loss is 0 up to rounding, and identity is first with strict <.
        auto fit = fitOf(matrixOf({{1, 2}, {3, 4}}), {matrixOf({{1, 1}})}, "none", "none");
        const auto rewrite = fitMethod(*fit, "smoothquant", {"search=output"});
        QVERIFY(std::holds_alternative<std::monostate>(rewrite->fitted.at("alpha")));
        QCOMPARE(std::get<bool>(rewrite->fitted.at("identity")), true);
        QVERIFY(allClose(scalesOf(rewrite), {1, 1}, 0));
    }
};

QTEST_GUILESS_MAIN(TestSmoothquant)
#include "tst_smoothquant.moc"
