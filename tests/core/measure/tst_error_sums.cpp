#include <QtTest>

#include <cmath>

#include "core/measure/error_sums.h"

using namespace planish;

class TestErrorSums : public QObject {
    Q_OBJECT
private slots:
    void pairwiseSumKeepsWhatARunningSumLoses()
    {
        // 2^26 + many 2^-30: a running sum drops every small term.
        std::vector<double> values(1 << 16, std::ldexp(1.0, -30));
        values.front() = std::ldexp(1.0, 26);
        double running = 0;
        for (double v : values)
            running += v;
        const double exact = std::ldexp(1.0, 26) + 65535 * std::ldexp(1.0, -30);
        QCOMPARE(running, std::ldexp(1.0, 26));
        QVERIFY(std::abs(pairwiseSum(values) - exact) < std::abs(running - exact) / 100);
    }
    void pairwiseSumOfNothingIsZero()
    {
        QCOMPARE(pairwiseSum({}), 0.0);
        const double one[] = {2.5};
        QCOMPARE(pairwiseSum(one), 2.5);
    }
    void relativeErrorIsTheRootOfTheRatioOfSums()
    {
        ErrorSums sums;
        sums.sums.rowError = {1, 3};
        sums.sums.rowReference = {10, 6};
        QCOMPARE(sums.error2(), 4.0);
        QCOMPARE(sums.reference2(), 16.0);
        QCOMPARE(sums.relativeFrobenius(), 0.5);
    }
    void errorAgainstAZeroOutputIsInfinite()
    {
        ErrorSums sums;
        sums.sums.rowError = {1};
        sums.sums.rowReference = {0};
        QVERIFY(std::isinf(sums.relativeFrobenius()));
        sums.sums.rowError = {0};
        QCOMPARE(sums.relativeFrobenius(), 0.0);
    }
};

QTEST_GUILESS_MAIN(TestErrorSums)
#include "tst_error_sums.moc"
