#include <QtTest>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/measure/statistics.h"
#include "tests/support/memory_dump.h"

using namespace planish;
using namespace planish::test;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

MatrixD traceMatrix() // diagonal.md 1.2
{
    return matrixOf({{1, -.5, 8, 0}, {-1, .5, 7, 0}, {1, .5, 9, 0}, {-1, -.5, -2, 4}});
}

std::vector<std::int64_t> allRows(const DumpEdge &edge)
{
    std::vector<std::int64_t> rows(edge.rows);
    std::iota(rows.begin(), rows.end(), 0);
    return rows;
}

Statistics measured(const MemoryDump &dump, const std::vector<std::int64_t> &rows, const StatisticsRequest &request = {})
{
    auto result = computeStatistics(dump, dump.info().edges.front(), rows, request, {});
    if (!result)
        qFatal("%s", toText(result.error()).c_str());
    return *result;
}

Statistics measured(const MatrixD &values, StoredType type)
{
    MemoryDump dump;
    const DumpEdge &edge = dump.add("e", values, type);
    return measured(dump, allRows(edge));
}

void compareClose(double actual, double expected, double relative = 1e-12)
{
    QVERIFY2(std::abs(actual - expected) <= relative * std::max(1.0, std::abs(expected)),
             qPrintable(QString("%1 is not %2").arg(actual, 0, 'g', 17).arg(expected, 0, 'g', 17)));
}

void compareExactPart(const Statistics &a, const Statistics &b)
{
    QCOMPARE(a.tokens, b.tokens);
    QCOMPARE(a.maxAbs, b.maxAbs);
    QCOMPARE(a.argmaxRow, b.argmaxRow);
    QCOMPARE(a.argmaxChannel, b.argmaxChannel);
    QCOMPARE(a.argmaxValue, b.argmaxValue);
    QCOMPARE(a.medianAbs, b.medianAbs);
    QCOMPARE(a.aboveHalf, b.aboveHalf);
    QCOMPARE(a.zeroRows, b.zeroRows);
    QCOMPARE(a.nonFinite, b.nonFinite);
    QCOMPARE(a.firstNonFiniteRow, b.firstNonFiniteRow);
    QCOMPARE(a.firstNonFiniteChannel, b.firstNonFiniteChannel);
    QCOMPARE(a.histogram, b.histogram);
    QCOMPARE(a.channel.maxAbs, b.channel.maxAbs);
    QCOMPARE(a.channel.minimum, b.channel.minimum);
    QCOMPARE(a.channel.maximum, b.channel.maximum);
    QCOMPARE(a.channel.overTau, b.channel.overTau);
    QCOMPARE(a.channel.overTauOrEqual, b.channel.overTauOrEqual);
    QCOMPARE(a.channel.finite, b.channel.finite);
    QCOMPARE(a.token.row, b.token.row);
    QCOMPARE(a.token.maxAbs, b.token.maxAbs);
    QCOMPARE(a.token.overTau, b.token.overTau);
}

void compareSums(const Statistics &a, const Statistics &b)
{
    compareClose(a.energy(), b.energy());
    compareClose(*a.tensor.kurtosis(), *b.tensor.kurtosis());
    compareClose(a.incoherenceSum, b.incoherenceSum);
    for (std::size_t k = 0; k < a.channels; ++k) {
        compareClose(a.channel.sum[k], b.channel.sum[k]);
        compareClose(a.channel.energy[k], b.channel.energy[k]);
        compareClose(a.channel.moments[k].kurtosis().value_or(0), b.channel.moments[k].kurtosis().value_or(0), 1e-10);
    }
}

} // namespace

class TestStatistics : public QObject {
    Q_OBJECT
private slots:
    void traceOfTheReferenceGivesItsNumbers_data()
    {
        QTest::addColumn<int>("type");
        QTest::newRow("f16") << int(StoredType::F16);
        QTest::newRow("bf16") << int(StoredType::Bf16);
        QTest::newRow("f32") << int(StoredType::F32);
        QTest::newRow("f64") << int(StoredType::F64);
        QTest::newRow("i16, widened by the dump") << int(StoredType::I16);
    }
    void traceOfTheReferenceGivesItsNumbers()
    {
        QFETCH(int, type);
        const bool whole = StoredType(type) == StoredType::I16; // integers cannot hold the halves: use twice the matrix
        MatrixD x = traceMatrix();
        for (double &v : x.values())
            v *= whole ? 2 : 1;
        const double scale = whole ? 2 : 1;
        MemoryDump dump;
        dump.add("e", x, StoredType(type));
        const Statistics s = measured(dump, {0, 1, 2, 3}, {.tau = 6 * scale});
        QCOMPARE(s.channel.maxAbs, (std::vector<double>{1 * scale, .5 * scale, 9 * scale, 4 * scale}));
        QCOMPARE(s.channel.energy,
                 (std::vector<double>{4 * scale * scale, 1 * scale * scale, 198 * scale * scale, 16 * scale * scale}));
        QCOMPARE(s.channel.overTau, (std::vector<std::uint64_t>{0, 0, 3, 0}));
        QCOMPARE(s.medianAbs, 1.0 * scale);
        QCOMPARE(*s.maxToMedian(), 9.0);
        QCOMPARE(s.argmaxRow, 2);
        QCOMPARE(s.argmaxChannel, 2);
        const double mu[] = {1.980750, 1.974968, 1.984744, 1.735444};
        for (int r = 0; r < 4; ++r)
            compareClose(s.token.incoherence[std::size_t(r)], mu[r], 5e-7);
        const double kurtosis[] = {1, 1, 2.265643, 2.333333};
        for (int k = 0; k < 4; ++k)
            compareClose(*s.channel.moments[std::size_t(k)].kurtosis(), kurtosis[k], 5e-7);
        compareClose(*s.tensor.kurtosis(), 2.975277, 5e-7);
        compareClose(s.channel.sum[2] / s.channel.sumAbs[2], .846154, 5e-7);
    }
    void momentsMergeAsTheFormulasSay()
    {
        const double values[] = {3, -1, 4, 1, -5, 9, 2, -6};
        Moments one, left, right;
        for (int i = 0; i < 8; ++i) {
            one.add(values[i]);
            (i < 3 ? left : right).add(values[i]);
        }
        left.merge(right);
        double mean = 0, central[5] = {};
        for (double v : values)
            mean += v / 8;
        for (double v : values)
            for (int p = 2; p <= 4; ++p)
                central[p] += std::pow(v - mean, p);
        for (const Moments &m : {one, left}) {
            QCOMPARE(m.n, std::uint64_t(8));
            compareClose(m.mean, mean);
            compareClose(m.m2, central[2]);
            compareClose(m.m3, central[3]);
            compareClose(m.m4, central[4]);
        }
        Moments empty;
        empty.merge(left);
        QCOMPARE(empty.m4, left.m4);
        QVERIFY(!Moments().kurtosis());
    }
    void mergeOfTwoPartsEqualsOnePass_data()
    {
        QTest::addColumn<int>("type");
        QTest::newRow("f16") << int(StoredType::F16);
        QTest::newRow("bf16") << int(StoredType::Bf16);
    }
    void mergeOfTwoPartsEqualsOnePass()
    {
        QFETCH(int, type);
        MatrixD x = wavyMatrix(61, 37);
        x(40, 5) = kNaN;
        std::ranges::fill(x.row(13), 0.0);
        MemoryDump dump;
        const DumpEdge &edge = dump.add("e", x, StoredType(type));
        std::vector<std::int64_t> even, odd;
        for (std::int64_t r : allRows(edge))
            (r % 2 ? odd : even).push_back(r);
        const Statistics whole = measured(dump, allRows(edge));
        Statistics merged = measured(dump, odd);
        QVERIFY(merged.merge(measured(dump, even)));
        compareExactPart(merged, whole);
        compareSums(merged, whole);
        QVERIFY(merged.medianExact);
        QCOMPARE(whole.nonFinite, std::uint64_t(1));
        QCOMPARE(whole.zeroRows, std::uint64_t(1));
    }
    void mergedFloatsSayThatTheirMedianIsNotExact()
    {
        MemoryDump dump;
        const DumpEdge &edge = dump.add("e", wavyMatrix(40, 30), StoredType::F32);
        const Statistics whole = measured(dump, allRows(edge));
        std::vector<std::int64_t> first(20), second(20);
        std::iota(first.begin(), first.end(), 0);
        std::iota(second.begin(), second.end(), 20);
        Statistics merged = measured(dump, first);
        QVERIFY(merged.merge(measured(dump, second)));
        QVERIFY(whole.medianExact && !merged.medianExact);
        QVERIFY(std::abs(merged.medianAbs / whole.medianAbs - 1) < 1.0 / 256);
        QCOMPARE(merged.maxAbs, whole.maxAbs);
    }
    void otherTauOrWidthIsRefusedByName()
    {
        Statistics a = statisticsOf(traceMatrix().view(), 6.0), b = statisticsOf(traceMatrix().view(), 5.0);
        auto refused = a.merge(b);
        QVERIFY(!refused && refused.error().subject == "tau");
        Statistics narrow = statisticsOf(matrixOf({{1, 2}}).view(), 6.0);
        refused = a.merge(narrow);
        QVERIFY(!refused && refused.error().subject == "channels");
        QCOMPARE(a.tokens, std::uint64_t(4));
    }
    void medianIsTheExactLowerMedian_data()
    {
        QTest::addColumn<int>("type");
        QTest::addColumn<int>("rows");
        for (auto [name, type] :
             {std::pair("f16", StoredType::F16), {"bf16", StoredType::Bf16}, {"f32", StoredType::F32}, {"f64", StoredType::F64}})
            for (int rows : {1, 2, 33})
                QTest::addRow("%s, %d rows", name, rows) << int(type) << rows;
    }
    void medianIsTheExactLowerMedian()
    {
        QFETCH(int, type);
        QFETCH(int, rows);
        MemoryDump dump;
        const DumpEdge &edge = dump.add("e", wavyMatrix(std::size_t(rows), 24, 5), StoredType(type));
        auto stored = *dump.readRows(edge, allRows(edge));
        std::vector<double> sorted;
        for (double v : stored.values())
            sorted.push_back(std::abs(v));
        std::ranges::sort(sorted);
        const Statistics s = measured(dump, allRows(edge));
        QCOMPARE(s.medianAbs, sorted[(sorted.size() - 1) / 2]);
        const auto above = std::ranges::count_if(sorted, [&](double v) { return v > sorted.back() / 2; });
        QCOMPARE(s.aboveHalf, std::uint64_t(above));
    }
    void nonFiniteElementsAreLeftOutAndCounted()
    {
        MatrixD x = traceMatrix();
        x(1, 2) = std::numeric_limits<double>::infinity();
        x(3, 0) = kNaN;
        for (StoredType type : {StoredType::F16, StoredType::F32, StoredType::F64}) {
            const Statistics s = measured(x, type);
            QCOMPARE(s.nonFinite, std::uint64_t(2));
            QCOMPARE(s.firstNonFiniteRow, 1);
            QCOMPARE(s.firstNonFiniteChannel, 2);
            QCOMPARE(s.channel.nonFinite, (std::vector<std::uint64_t>{1, 0, 1, 0}));
            QCOMPARE(s.channel.energy, (std::vector<double>{3, 1, 149, 16}));
            QCOMPARE(s.token.maxAbs[1], 1.0);
            QCOMPARE(s.finite(), std::uint64_t(14));
            QCOMPARE(s.maxAbs, 9.0);
        }
    }
    void zeroMedianGivesNoRatioAndMinusZeroIsZero()
    {
        const Statistics s = measured(matrixOf({{-0.0, 0, 3}, {0, -0.0, -0.0}}), StoredType::F16);
        QCOMPARE(s.medianAbs, 0.0);
        QVERIFY(!s.maxToMedian());
        QCOMPARE(s.zeroRows, std::uint64_t(1));
        QVERIFY(std::isnan(s.token.incoherence[1]));
        QCOMPARE(*s.meanIncoherence(), std::sqrt(3.0));
    }
    void argmaxIsTheSmallestRowThenChannel()
    {
        const Statistics s = measured(matrixOf({{1, 2, 2}, {0, 5, -5}, {5, 5, 5}}), StoredType::F32);
        QCOMPARE(s.argmaxRow, 1);
        QCOMPARE(s.argmaxChannel, 1);
    }
    void incoherenceDoesNotOverflow()
    {
        const Statistics s = statisticsOf(matrixOf({{1e300, -1e300, 1e300, 1e300}, {3e-200, 0, 0, 0}, {1, 1, 1, 1}}).view());
        compareClose(s.token.incoherence[0], 1.0);
        compareClose(s.token.incoherence[1], 2.0);
        compareClose(s.incoherenceSum, 4.0);
    }
    void rowsOfUnitsComeBackInFileOrder()
    {
        MatrixD x = wavyMatrix(60, 16, 9);
        MemoryDump dump(13);
        const DumpEdge &edge = dump.add("e", x, StoredType::F16);
        StatisticsRequest byUnit{.unitCount = 3};
        for (int r = 0; r < 60; ++r)
            byUnit.rowUnit.push_back(r < 20 ? r % 2 : r < 40 ? 2 : 0); // alternating rows first, then long runs
        const Statistics plain = measured(dump, allRows(edge)), units = measured(dump, allRows(edge), byUnit);
        compareExactPart(units, plain);
        compareSums(units, plain);
        QCOMPARE(units.token.energy, plain.token.energy);
        QCOMPARE(units.units.size(), std::size_t(3));
        QCOMPARE(units.units[0].rows, std::uint64_t(30));
        const auto total = [](const UnitSums &u) {
            return std::accumulate(u.histogram.begin(), u.histogram.end(), std::uint64_t(0));
        };
        QCOMPARE(total(units.units[1]), std::uint64_t(10 * 16));
    }
    void extraThresholdsCountBothComparators()
    {
        MemoryDump dump;
        dump.add("e", traceMatrix(), StoredType::F16);
        const Statistics s = measured(dump, {0, 1, 2, 3}, {.tau = 6, .thresholds = {8, 6}});
        QCOMPARE(s.at(8)->over, (std::vector<std::uint64_t>{0, 0, 1, 0}));
        QCOMPARE(s.at(8)->overOrEqual, (std::vector<std::uint64_t>{0, 0, 2, 0}));
        QCOMPARE(s.at(6)->over, s.channel.overTau);
        QVERIFY(!s.at(7));
    }
    void rowsLeftOutAreCountedBesideThem()
    {
        MemoryDump dump;
        for (int r = 0; r < 6; ++r)
            dump.addToken(0, 0, r == 1 || r == 5 ? 0 : 1);
        dump.add("e", wavyMatrix(6, 4), StoredType::F16);
        const Statistics s = measured(dump, {2, 3, 4});
        QCOMPARE(s.rowsInFile, std::uint64_t(6));
        QCOMPARE(s.masked, std::uint64_t(2));
        QCOMPARE(s.skipped, std::uint64_t(1));
        QCOMPARE(s.token.position, (std::vector<std::int32_t>{2, 3, 4}));
    }
    void noRowsIsAnErrorThatNamesTheEdge()
    {
        MemoryDump dump;
        const DumpEdge &edge = dump.add("layers.0.x", wavyMatrix(3, 4), StoredType::F16);
        auto result = computeStatistics(dump, edge, {}, {}, {});
        QVERIFY(!result && result.error().code == ErrorCode::Data && result.error().subject == "layers.0.x");
    }
    void stopIsHonoured()
    {
        MemoryDump dump;
        const DumpEdge &edge = dump.add("e", wavyMatrix(30, 4), StoredType::F16);
        std::stop_source source;
        source.request_stop();
        auto result = computeStatistics(dump, edge, allRows(edge), {}, source.get_token());
        QVERIFY(!result && result.error().code == ErrorCode::Cancelled);
    }
    void smallEdgesAreReadOnce()
    {
        MemoryDump dump;
        const DumpEdge &edge = dump.add("e", wavyMatrix(30, 4), StoredType::F64);
        measured(dump, allRows(edge), {.thresholds = {1, 2}});
        QCOMPARE(dump.visits(), 1);
    }
};

QTEST_GUILESS_MAIN(TestStatistics)
#include "tst_statistics.moc"
