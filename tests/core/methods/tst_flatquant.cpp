// FlatQuant on small random data: the fit never ends worse than identity on its validation rows, stays invertible and well conditioned,
// keeps ties, chooses factor sizes by either rule, and refuses what it cannot split. rotation.md 6.
#include <QtTest>

#include <cmath>

#include "core/methods/search_loss.h"
#include "tests/support/fit_inputs.h"
#include "tests/support/matrices.h"

using namespace planish;
using namespace planish::test;

namespace {

std::unique_ptr<Fit> outlierFit(std::size_t channels = 12)
{
    MatrixD x = randomMatrix(48, channels, "x");
    for (std::size_t m = 0; m < x.rows(); ++m)
        x(m, 3) *= 40;
    return fitOf(x, {randomMatrix(6, channels, "w0"), randomMatrix(5, channels, "w1")}, "int4:token", "int4:row");
}

double validationLoss(const Fit &fit, const Rewrite &rewrite)
{
    auto loss = SearchLoss::create(fit.input, SearchPart::Validation);
    return *(*loss)(rewrite);
}

std::int64_t fitted(const Rewrite &rewrite, const char *name)
{
    return std::get<std::int64_t>(rewrite.fitted.at(name));
}

} // namespace

class TestFlatquant : public QObject {
    Q_OBJECT
private slots:
    void learningBeatsIdentityOnAnOutlierChannel_data()
    {
        QTest::addColumn<QString>("form");
        QTest::newRow("svd") << "form=svd";
        QTest::newRow("direct") << "form=direct";
    }
    void learningBeatsIdentityOnAnOutlierChannel()
    {
        QFETCH(QString, form);
        auto fit = outlierFit();
        auto rewrite = fitMethod(*fit, "flatquant", {"steps=80", form.toStdString()});
        QVERIFY2(rewrite.has_value(), rewrite ? "" : toText(rewrite.error()).c_str());
        QVERIFY(validationLoss(*fit, *rewrite) < 0.5 * validationLoss(*fit, Rewrite{}));
        QVERIFY(rewrite->training.has_value());
        QVERIFY(rewrite->training->finalObjective <= rewrite->training->startObjective);
    }

    void factorsStayInvertibleAndWithinTheLimitOfKappa()
    {
        auto fit = outlierFit();
        const MatrixD x = fit->input.calibration.x();
        auto rewrite = fitMethod(*fit, "flatquant", {"steps=80", "lr=0.2", "kappa_limit=3"});
        QVERIFY(rewrite.has_value());
        QVERIFY(!rewrite->input.operators.empty());
        const auto &kronecker = std::get<KroneckerOp>(rewrite->input.operators.back().value);
        double kappa = 1;
        for (const auto &factor : {kronecker.first, kronecker.second}) {
            const auto &dense = std::get<DenseOp>(factor->value);
            double norm = 0, inverseNorm = 0;
            for (std::size_t r = 0; r < dense.matrix.rows(); ++r)
                for (std::size_t c = 0; c < dense.matrix.cols(); ++c) {
                    double product = 0;
                    for (std::size_t k = 0; k < dense.matrix.cols(); ++k)
                        product += dense.matrix(r, k) * dense.inverse(k, c);
                    QVERIFY(std::abs(product - (r == c ? 1.0 : 0.0)) < 1e-10);
                    norm += dense.matrix(r, c) * dense.matrix(r, c);
                    inverseNorm += dense.inverse(r, c) * dense.inverse(r, c);
                }
            // kappa_2 <= ||P||_F ||P^-1||_F <= n kappa_2
            kappa *= std::sqrt(norm * inverseNorm) / double(dense.matrix.rows());
        }
        QVERIFY(kappa <= 3.0 * (1 + 1e-9));
    }

    void tiedChannelsShareOneScale()
    {
        auto fit = outlierFit();
        fit->input.ties = {"gqa", {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}, 6};
        auto rewrite = fitMethod(*fit, "flatquant", {"steps=20"});
        QVERIFY(rewrite.has_value());
        QVERIFY(!rewrite->input.operators.empty());
        const auto &s = std::get<ScaleOp>(rewrite->input.operators.front().value).divisor;
        for (std::size_t k = 0; k < 6; ++k)
            QCOMPARE(s[k], s[k + 6]);
    }

    // rotation.md 6.2: 12 -> (2, 6) and 20 -> (2, 10) by the published search, 3 x 4 and 4 x 5 by ours.
    void factorSizesByEitherRule()
    {
        for (const auto &[channels, official, balanced] : {std::tuple<std::size_t, std::int64_t, std::int64_t>{12, 2, 3}, {20, 2, 4}}) {
            auto fit = outlierFit(channels);
            auto published = fitMethod(*fit, "flatquant", {"steps=1", "factors=official"});
            auto ours = fitMethod(*fit, "flatquant", {"steps=1"});
            QVERIFY(published.has_value() && ours.has_value());
            QCOMPARE(fitted(*published, "k1"), official);
            QCOMPARE(fitted(*ours, "k1"), balanced);
            QCOMPARE(fitted(*ours, "k2"), std::int64_t(channels) / balanced);
        }
    }

    void refusesWhatItCannotSplitOrLearn()
    {
        const auto sentence = [](std::size_t channels, std::vector<std::string> sets, const std::string &act = "int4:token", const std::string &weight = "int4:row") {
            auto fit = fitOf(randomMatrix(8, channels, "x"), {randomMatrix(3, channels, "w")}, act, weight);
            auto rewrite = fitMethod(*fit, "flatquant", sets);
            return rewrite ? std::string() : toText(rewrite.error());
        };
        QVERIFY(sentence(14, {"factors=official"}).find("2 mod 4") != std::string::npos);
        QVERIFY(sentence(257, {}).find("257") != std::string::npos);
        QVERIFY(sentence(12, {"k1=5"}).find("k1=5 does not divide") != std::string::npos);
        QVERIFY(sentence(12, {}, "none", "none").find("nothing to learn") != std::string::npos);
    }

    void aStopKeepsTheBestSoFar()
    {
        auto fit = outlierFit();
        std::stop_source source;
        fit->input.stop = source.get_token();
        fit->input.progress = [&](const ProgressReport &report) {
            if (report.done >= 30)
                source.request_stop();
        };
        auto rewrite = fitMethod(*fit, "flatquant", {"steps=80"});
        QVERIFY2(rewrite.has_value(), rewrite ? "" : toText(rewrite.error()).c_str());
        QVERIFY(rewrite->training->bestStep <= 30);
        QVERIFY(rewrite->training->finalObjective <= rewrite->training->startObjective);
        QVERIFY(!rewrite->input.operators.empty());
    }
};

QTEST_GUILESS_MAIN(TestFlatquant)
#include "tst_flatquant.moc"
