// OmniQuant on small random data: the fit never ends worse than identity on its validation rows, keeps ties, and refuses what it cannot learn.
#include <QtTest>

#include <cmath>

#include "core/methods/search_loss.h"
#include "tests/support/fit_inputs.h"
#include "tests/support/matrices.h"

using namespace planish;
using namespace planish::test;

namespace {

MatrixD withOutlier(MatrixD x)
{
    for (std::size_t m = 0; m < x.rows(); ++m)
        x(m, 3) *= 40;
    return x;
}

std::unique_ptr<Fit> outlierFit()
{
    return fitOf(withOutlier(randomMatrix(32, 8, "x")), {randomMatrix(6, 8, "w0"), randomMatrix(5, 8, "w1")}, "int4:token:asym:dialect=free",
                 "int4:row:asym:dialect=free");
}

double validationLoss(const Fit &fit, const Rewrite &rewrite)
{
    auto loss = SearchLoss::create(fit.input, SearchPart::Validation);
    return *(*loss)(rewrite);
}

} // namespace

class TestOmniquant : public QObject {
    Q_OBJECT
private slots:
    void learningBeatsIdentityOnAnOutlierChannel()
    {
        auto fit = outlierFit();
        auto rewrite = fitMethod(*fit, "omniquant", {"steps=60"});
        QVERIFY2(rewrite.has_value(), rewrite ? "" : toText(rewrite.error()).c_str());
        QVERIFY(validationLoss(*fit, *rewrite) < 0.7 * validationLoss(*fit, Rewrite{}));
        QVERIFY(rewrite->training.has_value());
        QVERIFY(rewrite->training->finalObjective <= rewrite->training->startObjective);
    }

    void tiedChannelsShareOneFactor()
    {
        auto fit = outlierFit();
        fit->input.ties = {"gqa", {0, 1, 2, 3, 0, 1, 2, 3}, 4};
        auto rewrite = fitMethod(*fit, "omniquant", {"steps=20"});
        QVERIFY(rewrite.has_value());
        if (rewrite->input.operators.empty())
            QSKIP("identity won on these rows");
        const auto &s = std::get<ScaleOp>(rewrite->input.operators.front().value).divisor;
        for (std::size_t k = 0; k < 4; ++k)
            QCOMPARE(s[k], s[k + 4]);
    }

    void refusesFloatWeights()
    {
        auto fit = fitOf(randomMatrix(8, 4, "x"), {randomMatrix(3, 4, "w")}, "int4:token", "fp8_e4m3:row");
        QVERIFY(!fitMethod(*fit, "omniquant").has_value());
    }
};

QTEST_GUILESS_MAIN(TestOmniquant)
#include "tst_omniquant.moc"
