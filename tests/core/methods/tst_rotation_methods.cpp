// Fixed rotations on the hand-checked traces of rotation.md: zigzag 4.3, base rotation 4.1, greedy search 4.4, WUSH 7.1, sequency 7.9.
#include <QtTest>

#include <cmath>

#include "core/methods/duquant_greedy.h"
#include "core/methods/rotation_parts.h"
#include "tests/support/fit_inputs.h"
#include "tests/support/matrices.h"

using namespace planish;
using namespace planish::test;

namespace {

bool close(const MatrixD &a, const MatrixD &b, double tolerance)
{
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!(std::abs(a.values()[i] - b.values()[i]) <= tolerance))
            return false;
    return a.rows() == b.rows() && a.cols() == b.cols();
}

MatrixD product(const MatrixD &x, const MatrixD &w)
{
    MatrixD y(x.rows(), w.rows());
    for (std::size_t m = 0; m < x.rows(); ++m)
        for (std::size_t n = 0; n < w.rows(); ++n)
            for (std::size_t k = 0; k < x.cols(); ++k)
                y(m, n) += x(m, k) * w(n, k);
    return y;
}

/// Smooth numbers without structure, the same on every machine.
MatrixD wavy(std::size_t rows, std::size_t cols, double phase)
{
    MatrixD m(rows, cols);
    for (std::size_t i = 0; i < m.size(); ++i)
        m.values()[i] = std::sin(1.7 * double(i) + phase) + (i % 11 == 3 ? 4.0 : 0.0);
    return m;
}

const MatrixD kTrace44 = matrixOf({{1, -2, 0, 16, 2, 1, 0, -1}, {0, 1, 2, 12, -1, 0, 1, 2}});

} // namespace

class TestRotationMethods : public QObject {
    Q_OBJECT
private slots:
    void zigzagFollowsTheExamples()
    {
        QCOMPARE(zigzagPermutation({0, 1, 2, 3, 4, 5, 6, 7}, 4), (std::vector<std::int64_t>{0, 3, 4, 7, 1, 2, 5, 6}));
        // a = [9,1,8,2,7,3,6,4,5,0,10,11], B = 4
        QCOMPARE(zigzagPermutation({11, 10, 0, 2, 4, 6, 8, 7, 5, 3, 1, 9}, 4), (std::vector<std::int64_t>{11, 6, 8, 9, 10, 4, 7, 1, 0, 2, 5, 3}));
    }

    void duquantBaseHasAUniformFirstRow()
    {
        const MatrixD base = duquantBase(4);
        const MatrixD expected = matrixOf({{.5, .5, .5, .5}, {0, .408248, -.816497, .408248}, {-.866025, .288675, .288675, .288675}, {0, -.707107, 0, .707107}});
        QVERIFY(close(base, expected, 1e-6));
    }

    void greedySearchFindsThePeaksOfTheTrace()
    {
        RandomStream stream(0, "duquant_q", "t");
        const GreedyResult greedy = greedyRotation(kTrace44.view(), {.q = DuquantQ::Identity, .block = 4, .steps = 3}, stream);
        QCOMPARE(greedy.peaks.size(), std::size_t(4));
        const double expected[] = {18, 11.139, 18.564, 12.095};
        for (std::size_t i = 0; i < 4; ++i)
            QVERIFY(std::abs(greedy.peaks[i] - expected[i]) < 1e-3);
        QCOMPARE(greedy.bestStep.front(), std::int64_t(1));
    }

    void duquantReachesTheTraceAndKeepsTheProduct()
    {
        auto fit = fitOf(kTrace44, {wavy(3, 8, .3)}, "int4:token", "int4:row");
        auto rewrite = fitMethod(*fit, "duquant", {"smooth=off", "q=identity", "block=4", "steps=3"});
        QVERIFY(rewrite.has_value());
        const MatrixD x = applyToActivations(rewrite->input, kTrace44.view());
        const MatrixD expected = matrixOf({{7.5508, 5.8412, 1.216, 6.6816, 7.7201, 7.551, .2236, 3.6162}, {5.0982, 7.3599, .0404, 2.4139, 3.3037, 6.8163, -1.1462, 3.2129}});
        QVERIFY(close(x, expected, 1e-4));
        QVERIFY(close(product(x, *applyToWeights(rewrite->input, wavy(3, 8, .3).view())), product(kTrace44, wavy(3, 8, .3)), 1e-12));
    }

    void blockThatDoesNotDivideIsRefusedWithThePossibleOnes()
    {
        auto fit = fitOf(kTrace44, {wavy(3, 8, .3)}, "int4:token", "int4:row");
        const auto rewrite = fitMethod(*fit, "duquant", {"block=3"});
        QVERIFY(!rewrite.has_value());
        QCOMPARE(rewrite.error().rule, std::string("divisibility"));
        QVERIFY(rewrite.error().expected.find("2, 4, 8") != std::string::npos);
    }

    void wushGivesBothMomentsTheSameDiagonal()
    {
        const MatrixD x = matrixOf({{4, 0}, {0, 1}, {4, 1}, {-4, 1}}), w = matrixOf({{1, 0}, {0, 1}, {1, 1}, {0, 2}});
        auto fit = fitOf(x, {w}, "int4:token", "int4:row");
        auto rewrite = fitMethod(*fit, "wush", {"block=2", "damping=0", "spectrum_damping=0"});
        QVERIFY(rewrite.has_value());
        const MatrixD xPrime = applyToActivations(rewrite->input, x.view());
        const MatrixD expected = matrixOf({{1.39136, 1.1478}, {-.61897, 1.00078}, {.77238, 2.14858}, {-2.01033, -.14702}});
        QVERIFY(close(xPrime, expected, 1e-5));
        const MatrixD wPrime = *applyToWeights(rewrite->input, w.view());
        double moments[4] = {};
        for (std::size_t i = 0; i < 4; ++i) {
            moments[0] += xPrime(i, 0) * xPrime(i, 0) / 4, moments[1] += xPrime(i, 1) * xPrime(i, 1) / 4;
            moments[2] += wPrime(i, 0) * wPrime(i, 0) / 4, moments[3] += wPrime(i, 1) * wPrime(i, 1) / 4;
        }
        for (double moment : moments)
            QVERIFY(std::abs(moment - 1.73925) < 1e-5);
    }

    void wushFallsBackToHadamardOnAZeroBlock()
    {
        const MatrixD x = matrixOf({{0, 0, 1, 2}, {0, 0, -1, 3}}), w = wavy(3, 4, .1);
        auto fit = fitOf(x, {w}, "int4:token", "int4:row");
        auto rewrite = fitMethod(*fit, "wush", {"block=2"});
        QVERIFY(rewrite.has_value());
        QCOMPARE(rewrite->clamps.at("zero_blocks"), std::int64_t(1));
        QVERIFY(close(product(applyToActivations(rewrite->input, x.view()), *applyToWeights(rewrite->input, w.view())), product(x, w), 1e-12));
    }

    void sequencyOrderIsThePublishedOne()
    {
        auto fit = fitOf(wavy(4, 8, 0), {wavy(2, 8, 1)}, "int4:token", "int4:row");
        auto rewrite = fitMethod(*fit, "block_hadamard", {"block=8", "signs=none", "order=sequency"});
        QVERIFY(rewrite.has_value());
        const auto &permute = std::get<PermuteOp>(rewrite->input.operators.front().value);
        // Natural rows by sequency: 0,4,6,2,3,7,5,1; the permutation is its inverse.
        QCOMPARE(permute.perm, (std::vector<std::int64_t>{0, 7, 3, 4, 1, 6, 2, 5}));
    }

    void everyFixedRotationKeepsTheProduct_data()
    {
        QTest::addColumn<QString>("method");
        for (const char *method : {"hadamard", "block_hadamard", "haar", "zigzag_hadamard", "smooth_hadamard", "wush", "duquant"})
            QTest::newRow(method) << method;
    }
    void everyFixedRotationKeepsTheProduct()
    {
        QFETCH(QString, method);
        const MatrixD x = wavy(12, 24, 0), w = wavy(6, 24, 2);
        auto fit = fitOf(x, {w}, "int4:token", "int4:row");
        auto rewrite = fitMethod(*fit, method.toStdString(), method == "wush" ? std::vector<std::string>{"block=8"} : std::vector<std::string>{});
        QVERIFY2(rewrite.has_value(), rewrite ? "" : toText(rewrite.error()).c_str());
        QVERIFY(close(product(applyToActivations(rewrite->input, x.view()), *applyToWeights(rewrite->input, w.view())), product(x, w), 1e-10));
        QVERIFY(!rewrite->input.isIdentity());
    }
};

QTEST_GUILESS_MAIN(TestRotationMethods)
#include "tst_rotation_methods.moc"
