#include <QtTest>

#include <cmath>
#include <numeric>

#include "core/geometry/concentration.h"
#include "core/geometry/histogram.h"
#include "core/geometry/incoherence.h"
#include "core/geometry/sink_gap.h"
#include "tests/support/memory_dump.h"

using namespace planish;
using namespace planish::test;

namespace {

bool close(double a, double b, double tolerance = 5e-7)
{
    return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}

} // namespace

class TestConcentration : public QObject {
    Q_OBJECT
private slots:
    void sharesOfTheTrace() // diagonal.md 1.2
    {
        const auto s = statisticsOf(matrixOf({{1, -.5, 8, 0}, {-1, .5, 7, 0}, {1, .5, 9, 0}, {-1, -.5, -2, 4}}).view());
        const auto curve = concentrationCurve(s);
        QVERIFY(close(curve[0], .904110) && close(curve[1], .977169) && close(curve[2], .995434) && curve[3] == 1.0);
        const Concentration c = concentrationOf(s);
        QVERIFY(close(*c.c1, .904110));
        QCOMPARE(*c.c8, 1.0);
        QCOMPARE(c.r1pct, std::size_t(1));
        QCOMPARE(channelsByEnergy(s), (std::vector<std::size_t>{2, 3, 0, 1}));
    }
    void onePercentIsRoundedUp_data()
    {
        QTest::addColumn<int>("channels");
        QTest::addColumn<int>("r");
        for (auto [channels, r] : {std::pair(1, 1), {99, 1}, {100, 1}, {101, 2}, {384, 4}, {576, 6}, {1536, 16}})
            QTest::addRow("K = %d", channels) << channels << r;
    }
    void onePercentIsRoundedUp()
    {
        QFETCH(int, channels);
        QFETCH(int, r);
        const MatrixD x = wavyMatrix(2, std::size_t(channels));
        QCOMPARE(concentrationOf(statisticsOf(x.view())).r1pct, std::size_t(r));
    }
    void equalEnergiesKeepTheOrderOfChannels()
    {
        QCOMPARE(channelsByEnergy(statisticsOf(matrixOf({{1, 2, -1, 2}}).view())), (std::vector<std::size_t>{1, 3, 0, 2}));
    }
    void zeroEnergyHasNoShares()
    {
        const Concentration c = concentrationOf(statisticsOf(matrixOf({{0, 0}, {0, 0}}).view()));
        QVERIFY(!c.c1 && !c.c8 && !c.c1pct);
    }
    void incoherenceProfileCountsEveryRowThatIsNotZero()
    {
        const auto s = statisticsOf(matrixOf({{1, 1, 1, 1}, {0, 0, 0, 0}, {0, 0, 7, 0}}).view());
        const IncoherenceProfile p = incoherenceProfile(s, 8);
        QCOMPARE(std::accumulate(p.histogram.counts.begin(), p.histogram.counts.end(), std::uint64_t(0)), std::uint64_t(2));
        QCOMPARE(p.histogram.counts.front(), std::uint64_t(1));
        QCOMPARE(p.histogram.counts.back(), std::uint64_t(1));
        QCOMPARE(p.maximumRow, 2);
        QCOMPARE(p.maximum, 2.0);
        QCOMPARE(p.zeroRows, std::uint64_t(1));
    }
    void histogramsHoldEveryValueOnce()
    {
        for (auto scale : {BinScale::Linear, BinScale::Logarithmic}) {
            const MatrixD x = wavyMatrix(20, 20);
            const Histogram h = histogramOf(x.values(), 17, scale);
            const auto inside = std::accumulate(h.counts.begin(), h.counts.end(), std::uint64_t(0));
            QCOMPARE(inside + h.below + h.above, std::uint64_t(400));
            QCOMPARE(h.edges.size(), std::size_t(18));
            QVERIFY(std::ranges::is_sorted(h.edges));
        }
        const double linear[] = {0, 1, 2, 3, 4};
        QCOMPARE(histogramOf(linear, 4, BinScale::Linear).counts, (std::vector<std::uint64_t>{1, 1, 1, 2}));
        const double powers[] = {1, 10, 100, -5, 0};
        const Histogram logarithmic = histogramOf(powers, 2, BinScale::Logarithmic);
        QCOMPARE(logarithmic.counts, (std::vector<std::uint64_t>{1, 2}));
        QCOMPARE(logarithmic.below, std::uint64_t(2));
    }
    void valueHistogramOfHalvesNeedsNoSecondPass()
    {
        MemoryDump dump;
        const DumpEdge &edge = dump.add("e", wavyMatrix(30, 8), StoredType::F16);
        std::vector<std::int64_t> rows(30);
        std::iota(rows.begin(), rows.end(), 0);
        auto s = computeStatistics(dump, edge, rows, {}, {});
        const int before = dump.visits();
        auto magnitudes = valueHistogram(dump, edge, *s, {BinScale::Logarithmic, ValueSign::Magnitude, 32}, {});
        QVERIFY(magnitudes);
        QCOMPARE(dump.visits(), before);
        const auto total = [](const Histogram &h) {
            return std::accumulate(h.counts.begin(), h.counts.end(), h.below + h.above);
        };
        QCOMPARE(total(*magnitudes), std::uint64_t(240));
        auto values = valueHistogram(dump, edge, *s, {BinScale::Linear, ValueSign::Signed, 32}, {});
        QCOMPARE(total(*values), std::uint64_t(240));
        QVERIFY(!valueHistogram(dump, edge, *s, {BinScale::Logarithmic, ValueSign::Signed, 32}, {}));
    }
    void sinkGapOfTheTable() // diagonal.md 1.6
    {
        const struct {
            double eps, gap[3];
        } rows[] = {{.1, {2.197225, 4.905275, 9.821355}},
                    {.01, {4.595120, 7.303170, 12.219250}},
                    {.001, {6.906755, 9.614805, 14.530885}}};
        const std::int64_t tokens[] = {2, 16, 2048};
        for (const auto &row : rows)
            for (int t = 0; t < 3; ++t)
                QVERIFY(close(*neededSinkGap(row.eps, tokens[t]), row.gap[t]));
        QVERIFY(!neededSinkGap(0, 16) && !neededSinkGap(1, 16) && !neededSinkGap(.1, 1));
    }
};

QTEST_GUILESS_MAIN(TestConcentration)
#include "tst_concentration.moc"
