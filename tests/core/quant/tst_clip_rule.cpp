#include <QtTest>

#include <cmath>
#include <limits>

#include "core/quant/clip_rule.h"

using namespace planish;

namespace {

MatrixD column(std::initializer_list<double> values)
{
    MatrixD matrix(values.size(), 1);
    std::copy(values.begin(), values.end(), matrix.data());
    return matrix;
}

FixedRanges rangesOf(const char *spec, const MatrixD &x)
{
    return *staticRanges(*parseQuantSpec(spec, Role::Activation), x.view());
}

double largest(Range range)
{
    return std::max(std::abs(range.lo), std::abs(range.hi));
}

} // namespace

class TestClipRule : public QObject {
    Q_OBJECT

private slots:
    void percentileIsTheLinearQuantile() // diagonal.md 3.1: p = .9 gives 18.1, p = .99 gives 91.81
    {
        const MatrixD x = column({1, 2, 3, 4, 5, 6, 7, 8, 9, 100});
        QVERIFY(std::abs(largest(rangesOf("int8:tensor:static:clip=p0.9", x)[0]) - 18.1) < 1e-12);
        QVERIFY(std::abs(largest(rangesOf("int8:tensor:static:clip=p0.99", x)[0]) - 91.81) < 1e-12);
        QCOMPARE(largest(rangesOf("int8:tensor:static", x)[0]), 100.0);
        QCOMPARE(largest(rangesOf("int8:tensor:static:clip=0.5", x)[0]), 50.0);
    }

    void smallestErrorTakesTheTracedRange() // diagonal.md 3.1: b = 3, best c = 7.6
    {
        const MatrixD x = column({.3, -.7, 1.1, -1.6, 2.2, -.9, .5, 8});
        QVERIFY(std::abs(largest(rangesOf("int3:tensor:static:clip=mse", x)[0]) - 7.6) < 1e-12);
    }

    void channelsHaveTheirOwnRangeAndTensorHasOne()
    {
        MatrixD x(2, 2);
        x(0, 0) = -1;
        x(1, 0) = .5;
        x(0, 1) = 3;
        x(1, 1) = 8;
        const FixedRanges channels = rangesOf("int8:channel:asym:static", x);
        QCOMPARE(channels.size(), std::size_t{2});
        QCOMPARE(channels[0].lo, -1.0);
        QCOMPARE(channels[0].hi, 0.5);
        QCOMPARE(channels[1].lo, 0.0); // dialect zero widens to zero
        QCOMPARE(channels[1].hi, 8.0);
        const FixedRanges tensor = rangesOf("int8:tensor:asym:static", x);
        QCOMPARE(tensor.size(), std::size_t{1});
        QCOMPARE(tensor[0].lo, -1.0);
        QCOMPARE(tensor[0].hi, 8.0);
    }

    void staticNvfp4CarriesTheTensorMaximum()
    {
        const MatrixD x = column({1, -20, 3});
        const QuantSpec spec = *parseQuantSpec("nvfp4:static", Role::Activation);
        QCOMPARE(staticTensorMax(spec, *staticRanges(spec, x.view())), 20.0);
        const QuantSpec dynamic = *parseQuantSpec("nvfp4", Role::Activation);
        QVERIFY(staticRanges(dynamic, x.view())->empty());
        QCOMPARE(staticTensorMax(dynamic, {}), -1.0);
    }

    void nonFiniteAndMissingRowsAreRefused()
    {
        const QuantSpec spec = *parseQuantSpec("int8:tensor:static", Role::Activation);
        MatrixD x = column({1, std::numeric_limits<double>::quiet_NaN()});
        QVERIFY(!staticRanges(spec, x.view()));
        QVERIFY(!staticRanges(spec, MatrixD().view()));
    }
};

QTEST_GUILESS_MAIN(TestClipRule)
#include "tst_clip_rule.moc"
