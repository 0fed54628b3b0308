#include <QtTest>

#include <cmath>

#include "core/methods/edge_product.h"
#include "tests/support/fit_inputs.h"
#include "tests/support/matrices.h"

using namespace planish;
using namespace planish::test;

namespace {

/// The trace of diagonal.md 4.4; O = {2}.
std::unique_ptr<Fit> trace()
{
    return fitOf(matrixOf({{1, -1.984375, 60, .3}, {1.984375, 1, -50, -.9}}),
                 {matrixOf({{.5, .25, -.3, .9921875}, {-.9921875, .7, .2, -.5}})}, "int8:token", "int8:row");
}

Expected<ProductError> measured(Fit &fit, const std::vector<std::string> &sets, const std::string &method = "llm_int8")
{
    auto rewrite = fitMethod(fit, method, sets);
    if (!rewrite)
        return tl::make_unexpected(rewrite.error());
    auto rows = makeProductRows(fit.input.backend, "trace", fit.input.calibration.sharedX(), fit.input.calibration.requests(),
                                fit.input.calibration.sharedX(), fit.input.consumers);
    return measureProduct(*rows, *rewrite, fit.input.specs, TermDetail::All, {});
}

} // namespace

class TestLlmInt8 : public QObject {
    Q_OBJECT
private slots:
    void errorsOfTheThreeVariantsMatchTheTrace_data()
    {
        QTest::addColumn<QString>("method");
        QTest::addColumn<QStringList>("sets");
        QTest::addColumn<double>("maxAbs");
        QTest::newRow("paper, static") << "llm_int8" << QStringList{} << .006250;
        QTest::newRow("paper, dynamic") << "llm_int8" << QStringList{"select=dynamic"} << .006250;
        QTest::newRow("paper, topk") << "llm_int8" << QStringList{"select=topk", "count=1"} << .006250;
        QTest::newRow("bitsandbytes") << "llm_int8" << QStringList{"variant=bitsandbytes"} << .184399;
        QTest::newRow("bitsandbytes, dynamic") << "llm_int8" << QStringList{"variant=bitsandbytes", "select=dynamic"} << .184399;
        QTest::newRow("threshold 0") << "llm_int8" << QStringList{"threshold=0"} << .354688;
        QTest::newRow("no decomposition") << "none" << QStringList{} << .354688;
    }
    void errorsOfTheThreeVariantsMatchTheTrace()
    {
        QFETCH(QString, method);
        QFETCH(QStringList, sets);
        QFETCH(double, maxAbs);
        std::vector<std::string> settings;
        for (const QString &set : sets)
            settings.push_back(set.toStdString());
        auto fit = trace();
        const auto product = measured(*fit, settings, method.toStdString());
        QVERIFY2(product.has_value(), product ? "" : toText(product.error()).c_str());
        QVERIFY2(std::abs(product->sums.maxAbs - maxAbs) < 1e-6, qPrintable(QString::number(product->sums.maxAbs, 'g', 9)));
    }
    void bitsandbytesStepSeesElementsBelowTheThresholdInOutlierColumns() // diagonal.md 4.3 item 2: 5.9 for row 0, not .5
    {
        auto fit = fitOf(matrixOf({{.5, 5.9, .25}, {1, 7, -.5}}), {matrixOf({{1, 1, 1}})}, "int8:token", "none");
        const auto product = measured(*fit, {"variant=bitsandbytes"});
        QVERIFY(product.has_value());
        const double step = 5.9 / 127, x = .5;
        const double expected = std::nearbyint(x / step) * step - x + (std::nearbyint(.25 / step) * step - .25);
        QVERIFY(std::abs(std::sqrt(product->sums.rowError[0]) - std::abs(expected)) < 1e-12);
    }
    void dynamicColumnsBelongToTheirRequest()
    {
        auto fit = fitOf(matrixOf({{1, 9, .3}, {9, 1, .3}}), {matrixOf({{.3, .7, .9}, {.1, -.4, .8}})}, "int8:token", "int8:row");
        auto chain = fitMethod(*fit, "llm_int8", {"select=dynamic"});
        auto rows = makeProductRows(fit->input.backend, "two", fit->input.calibration.sharedX(), {4, 7},
                                    fit->input.calibration.sharedX(), fit->input.consumers);
        const auto product = measureProduct(*rows, *chain, fit->input.specs, TermDetail::All, {});
        QVERIFY(product.has_value());
        QCOMPARE(product->exceptions->unitIds, (std::vector<std::int32_t>{4, 7}));
        QCOMPARE(product->exceptions->unitColumns[0], (std::vector<std::uint8_t>{0, 1, 0}));
        QCOMPARE(product->exceptions->unitColumns[1], (std::vector<std::uint8_t>{1, 0, 0}));
        // Each request alone gives the same row errors as both together.
        for (std::size_t m = 0; m < 2; ++m) {
            auto x = std::make_shared<MatrixD>(1, 3);
            std::copy_n(fit->input.calibration.x().row(m).begin(), 3, x->row(0).begin());
            auto alone = makeProductRows(fit->input.backend, "one", x, {0}, x, fit->input.consumers);
            const auto single = measureProduct(*alone, *chain, fit->input.specs, TermDetail::All, {});
            QCOMPARE(single->sums.rowError[0], product->sums.rowError[m]);
        }
    }
    void strictComparatorLeavesTheThresholdItselfIn()
    {
        auto fit = fitOf(matrixOf({{6, 7}, {1, 1}}), {matrixOf({{1, 1}})}, "int8:token", "int8:row");
        QCOMPARE(std::get<std::int64_t>(fitMethod(*fit, "llm_int8")->fitted.at("columns")), std::int64_t{2});
        QCOMPARE(std::get<std::int64_t>(fitMethod(*fit, "llm_int8", {"comparator=gt"})->fitted.at("columns")), std::int64_t{1});
    }
    void topkRanksAsAsked()
    {
        auto fit = fitOf(matrixOf({{9, 4, 1}, {0, 4, 1}, {0, 4, 1}}), {matrixOf({{1, 1, 5}})}, "int8:token", "int8:row");
        const auto columns = [&](const char *by) {
            const auto rewrite = fitMethod(*fit, "llm_int8", {"select=topk", "count=1", std::string("rank_by=") + by});
            return std::get<StaticExceptions>(rewrite->exceptions->rule).columns;
        };
        QCOMPARE(columns("max"), std::vector<std::int64_t>{0});
        QCOMPARE(columns("mean"), std::vector<std::int64_t>{1});
        QCOMPARE(columns("energy"), std::vector<std::int64_t>{0});
        QCOMPARE(columns("weight_norm"), std::vector<std::int64_t>{2});
    }
};

QTEST_GUILESS_MAIN(TestLlmInt8)
#include "tst_llm_int8.moc"
