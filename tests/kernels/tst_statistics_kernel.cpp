// The one-pass statistics kernel: the trace of diagonal.md 1.2, the plain loops, threads, non-finite values, every stored width.
#include <QtTest>

#include <cstring>
#include <limits>

#include "kernels/float_codes.h"
#include "kernels/statistics.h"

using namespace planish;

namespace {

std::vector<std::byte> stored(StoredKind kind, const std::vector<double> &values)
{
    std::vector<std::byte> bytes(values.size() * byteSize(kind));
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint16_t half = halfBits(values[i]), brain = bfloat16Bits(values[i]);
        const auto single = static_cast<float>(values[i]);
        const void *from = kind == StoredKind::F16    ? static_cast<const void *>(&half)
                           : kind == StoredKind::Bf16 ? static_cast<const void *>(&brain)
                           : kind == StoredKind::F32  ? static_cast<const void *>(&single)
                                                      : static_cast<const void *>(&values[i]);
        std::memcpy(bytes.data() + i * byteSize(kind), from, byteSize(kind));
    }
    return bytes;
}

/// Channels: a large one, an offset one, a constant, zeros, exact 6s; every 300th row an outlier a thousand times larger.
std::vector<double> activations(std::size_t rows, std::size_t channels)
{
    std::vector<double> values(rows * channels);
    std::uint64_t state = 3;
    for (std::size_t i = 0; i < values.size(); ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const std::size_t r = i / channels, k = i % channels;
        const double noise = static_cast<double>(state >> 40) / 16777216.0 - .5;
        values[i] = k == 3 ? 30 * noise : k == 5 ? 100 + noise : k == 6 ? 2.5 : k == 2 ? 0.0 : k == 7 ? 6.0 : noise;
        values[i] *= r % 300 == 0 && k % 2 == 1 ? 500.0 : 1.0;
    }
    return values;
}

BlockStatistics scan(StoredKind kind, const std::vector<std::byte> &bytes, std::size_t channels, int threads)
{
    BlockStatistics out(channels, 6.0);
    const std::size_t stride = channels * byteSize(kind), rows = bytes.size() / stride, first = rows / 3;
    accumulateRows(kind, bytes.data(), first, stride, out, threads);
    accumulateRows(kind, bytes.data() + first * stride, rows - first, stride, out, threads);
    return out;
}

bool close(const std::vector<double> &a, const std::vector<double> &b, double tolerance)
{
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (!(std::fabs(a[i] - b[i]) <= tolerance * std::fabs(b[i]))) {
            qWarning("entry %zu: %.17g against %.17g", i, a[i], b[i]);
            return false;
        }
    }
    return a.size() == b.size();
}

bool exactPartsEqual(const BlockStatistics &a, const BlockStatistics &b)
{
    return a.minimum == b.minimum && a.maximum == b.maximum && a.maxAbs == b.maxAbs && a.finite == b.finite &&
           a.nonFinite == b.nonFinite && a.overTau == b.overTau && a.overTauOrEqual == b.overTauOrEqual &&
           a.rowMaxAbs == b.rowMaxAbs && a.rowOverTau == b.rowOverTau && a.histogram == b.histogram &&
           a.firstNonFiniteRow == b.firstNonFiniteRow && a.firstNonFiniteChannel == b.firstNonFiniteChannel;
}

bool sumsEqual(const BlockStatistics &a, const BlockStatistics &b)
{
    return a.sum == b.sum && a.sumAbs == b.sumAbs && a.energy == b.energy && a.mean == b.mean && a.m2 == b.m2 && a.m3 == b.m3 &&
           a.m4 == b.m4 && a.rowEnergy == b.rowEnergy;
}

} // namespace

class TestStatisticsKernel : public QObject {
    Q_OBJECT
private slots:
    void initTestCase_data()
    {
        QTest::addColumn<int>("kind");
        QTest::newRow("f16") << int(StoredKind::F16);
        QTest::newRow("bf16") << int(StoredKind::Bf16);
        QTest::newRow("f32") << int(StoredKind::F32);
        QTest::newRow("f64") << int(StoredKind::F64);
    }
    void init()
    {
        QFETCH_GLOBAL(int, kind);
        m_kind = static_cast<StoredKind>(kind);
    }

    void traceIsReproduced()
    {
        const auto bytes = stored(m_kind, {1, -.5, 8, 0, -1, .5, 7, 0, 1, .5, 9, 0, -1, -.5, -2, 4});
        BlockStatistics s(4, 6.0);
        accumulateRows(m_kind, bytes.data(), 4, 4 * byteSize(m_kind), s);
        QCOMPARE(s.maxAbs, (std::vector<double>{1, .5, 9, 4}));
        QCOMPARE(s.energy, (std::vector<double>{4, 1, 198, 16}));
        QCOMPARE(s.overTau, (std::vector<std::uint64_t>{0, 0, 3, 0}));
        const double expected[4] = {1, 1, 2.265643, 2.333333};
        for (std::size_t k = 0; k < 4; ++k) {
            QVERIFY(std::fabs(4 * s.m4[k] / (s.m2[k] * s.m2[k]) - expected[k]) < 1e-6);
        }
        QVERIFY(std::fabs(s.sum[2] / s.sumAbs[2] - .846154) < 1e-6);
    }
    void plainLoopsAgree()
    {
        for (const std::size_t channels : {1, 7, 33, 576, 1000}) {
            const std::size_t rows = 2100;
            const auto bytes = stored(m_kind, activations(rows, channels));
            const BlockStatistics fast = scan(m_kind, bytes, channels, 0);
            BlockStatistics plain(channels, 6.0);
            accumulateRowsReference(m_kind, bytes.data(), rows, channels * byteSize(m_kind), plain);
            QVERIFY(exactPartsEqual(fast, plain));
            QVERIFY(close(fast.energy, plain.energy, 1e-12) && close(fast.sumAbs, plain.sumAbs, 1e-12));
            QVERIFY(close(fast.m2, plain.m2, 1e-11) && close(fast.m4, plain.m4, 1e-11) &&
                    close(fast.rowEnergy, plain.rowEnergy, 1e-12));
        }
    }
    void threadsDoNotChangeBits()
    {
        const auto bytes = stored(m_kind, activations(2500, 600));
        const BlockStatistics one = scan(m_kind, bytes, 600, 1);
        for (const int threads : {2, 5}) {
            const BlockStatistics many = scan(m_kind, bytes, 600, threads);
            QVERIFY(exactPartsEqual(one, many) && sumsEqual(one, many));
        }
    }
    void nonFiniteElementsAreLeftOutAndPlaced()
    {
        for (const std::size_t channels : {5, 40, 300}) {
            auto values = activations(1500, channels);
            values[700 * channels + 4] = std::numeric_limits<double>::quiet_NaN();
            values[700 * channels + 2] = -std::numeric_limits<double>::infinity();
            values[1400 * channels + 1] = std::numeric_limits<double>::infinity();
            const auto bytes = stored(m_kind, values);
            const BlockStatistics fast = scan(m_kind, bytes, channels, 2);
            BlockStatistics plain(channels, 6.0);
            accumulateRowsReference(m_kind, bytes.data(), 1500, channels * byteSize(m_kind), plain);
            QVERIFY(exactPartsEqual(fast, plain));
            QCOMPARE(fast.firstNonFiniteRow, std::int64_t(700));
            QCOMPARE(fast.firstNonFiniteChannel, std::int64_t(2));
            QCOMPARE(fast.nonFinite[4], std::uint64_t(1));
            QVERIFY(close(fast.energy, plain.energy, 1e-12));
        }
    }
    void constantChannelHasNoSpread()
    {
        const auto bytes = stored(m_kind, std::vector<double>(3000, 2.7));
        const BlockStatistics s = scan(m_kind, bytes, 1, 0);
        QCOMPARE(s.m2.front(), 0.0);
        QCOMPARE(s.m4.front(), 0.0);
    }
    void thresholdsBetweenStoredValuesCountExactly()
    {
        const auto bytes = stored(m_kind, {6, -6, 5.5, 6.25, 0, -7});
        for (const double tau : {6.0, 6.1, 0.0, 1e300}) {
            BlockStatistics fast(1, tau), plain(1, tau);
            accumulateRows(m_kind, bytes.data(), 6, byteSize(m_kind), fast);
            accumulateRowsReference(m_kind, bytes.data(), 6, byteSize(m_kind), plain);
            QCOMPARE(fast.overTau, plain.overTau);
            QCOMPARE(fast.overTauOrEqual, plain.overTauOrEqual);
        }
    }
    void strideSkipsForeignBytes()
    {
        const auto bytes = stored(m_kind, {1, 2, 99, 3, 4, 99});
        BlockStatistics s(2, 6.0);
        accumulateRows(m_kind, bytes.data(), 2, 3 * byteSize(m_kind), s);
        QCOMPARE(s.sum, (std::vector<double>{4, 6}));
        QCOMPARE(s.rowEnergy, (std::vector<double>{5, 25}));
    }

private:
    StoredKind m_kind = StoredKind::F64;
};

QTEST_GUILESS_MAIN(TestStatisticsKernel)
#include "tst_statistics_kernel.moc"
