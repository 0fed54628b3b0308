#include <QtTest>

#include <cmath>

#include "core/methods/clip_search.h"
#include "tests/support/fit_inputs.h"
#include "tests/support/matrices.h"

using namespace planish;
using namespace planish::test;

class TestClip : public QObject {
    Q_OBJECT
private slots:
    void tensorObjectiveFindsTheClipOfTheTrace() // diagonal.md 3.1, b = 3: c = 7.6 (i = 5) at .499028, with norm 2.4 c = 7.52
    {
        const MatrixD v = matrixOf({{.3, -.7, 1.1, -1.6, 2.2, -.9, .5, 8}});
        auto fit = fitOf(v, {randomMatrix(2, 8, "w")}, "int3:token", "none");
        const auto square = fitMethod(*fit, "clip", {"objective=tensor"});
        QVERIFY2(square.has_value(), square ? "" : toText(square.error()).c_str());
        QVERIFY(std::abs(std::get<double>(square->fitted.at("activation_ratio")) * 8 - 7.6) < 1e-12);
        QVERIFY(std::abs(square->log[0].loss / 8 - .525694) < 1e-6);
        QVERIFY(std::abs(square->log[5].loss / 8 - .499028) < 1e-6);
        QVERIFY(std::abs(square->log[20].loss / 8 - .694583) < 1e-6);
        const auto power = fitMethod(*fit, "clip", {"objective=tensor", "norm=2.4"});
        QVERIFY(std::abs(std::get<double>(power->fitted.at("activation_ratio")) * 8 - 7.52) < 1e-12);
    }
    void ratiosStartAtTheFullRange()
    {
        const auto ratios = clipRatios(100, .8);
        QCOMPARE(ratios.size(), std::size_t{80});
        QCOMPARE(ratios.front(), 1.0);
        QVERIFY(std::abs(ratios.back() - .21) < 1e-15);
        QCOMPARE(clipRatios(100, 0).size(), std::size_t{1});
    }
    void aSpecWithItsOwnRuleIsNotSearched()
    {
        auto fit = fitOf(randomMatrix(8, 8, "x"), {randomMatrix(4, 8, "w")}, "int4:token:clip=mse", "int4:row:clip=0.9");
        const auto rewrite = fitMethod(*fit, "clip", {"target=both"});
        QVERIFY(rewrite.has_value());
        QVERIFY(rewrite->clips.empty());
        QCOMPARE(rewrite->notes.size(), std::size_t{2});
    }
    void outputObjectiveNeverLosesAgainstTheFullRange_data()
    {
        QTest::addColumn<QString>("per");
        QTest::addColumn<QString>("weight");
        for (const char *per : {"tensor", "share"})
            for (const char *weight : {"int3:tensor", "int3:row", "int3:group8"})
                QTest::newRow(qPrintable(QString("%1 %2").arg(per, weight))) << per << weight;
    }
    void outputObjectiveNeverLosesAgainstTheFullRange()
    {
        QFETCH(QString, per);
        QFETCH(QString, weight);
        MatrixD w = randomMatrix(6, 16, "w");
        for (std::size_t n = 0; n < w.rows(); ++n)
            w(n, n) *= 8;
        auto fit = fitOf(randomMatrix(40, 16, "x"), {w}, "none", weight.toStdString());
        const auto rewrite = fitMethod(*fit, "clip", {"target=weight", "per=" + per.toStdString()});
        QVERIFY2(rewrite.has_value(), rewrite ? "" : toText(rewrite.error()).c_str());
        auto loss = SearchLoss::create(fit->input, SearchPart::Fit);
        const double clipped = *(*loss)(*rewrite), full = *(*loss)(Rewrite{});
        // Rows of one size keep the full range when one ratio must serve all of them; a ratio of their own always helps some.
        QVERIFY2(per == "share" ? clipped < full : clipped <= full, qPrintable(QString("%1 against %2").arg(clipped).arg(full)));
    }
    void perShareOfDynamicActivationsIsRefused()
    {
        auto fit = fitOf(randomMatrix(8, 8, "x"), {randomMatrix(4, 8, "w")}, "int4:token", "int4:row");
        const auto rewrite = fitMethod(*fit, "clip", {"per=share"});
        QVERIFY(!rewrite.has_value());
        QCOMPARE(rewrite.error().code, ErrorCode::Refused);
    }
    void blockFormatsAreRefusedByName()
    {
        auto fit = fitOf(randomMatrix(8, 32, "x"), {randomMatrix(4, 32, "w")}, "mxfp4", "mxfp4");
        const auto rewrite = fitMethod(*fit, "clip");
        QVERIFY(!rewrite.has_value());
        QVERIFY(rewrite.error().what.find("block format") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestClip)
#include "tst_clip.moc"
