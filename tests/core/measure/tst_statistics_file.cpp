#include <QtTest>

#include <numeric>

#include "core/measure/statistics_file.h"
#include "tests/support/memory_dump.h"

using namespace planish;
using namespace planish::test;

namespace {

StatisticsFile fileOf(const MatrixD &values, const std::vector<std::int64_t> &rows, const std::string &key = "k")
{
    MemoryDump dump;
    const DumpEdge &edge = dump.add("layers.0.attn_in", values, StoredType::F16, "attn_in");
    auto statistics = computeStatistics(dump, edge, rows, {.thresholds = {2.0}}, {});
    StatisticsFile file{.file = key + ".h5", .fileKey = key, .skipPositions = {0}};
    file.edges.push_back({edge.id, 0, "attn_in", "float16", *statistics});
    return file;
}

std::vector<std::int64_t> range(std::int64_t begin, std::int64_t end)
{
    std::vector<std::int64_t> rows(std::size_t(end - begin));
    std::iota(rows.begin(), rows.end(), begin);
    return rows;
}

} // namespace

class TestStatisticsFile : public QObject {
    Q_OBJECT
private slots:
    void savedBytesReadBackTheSame()
    {
        const StatisticsFile file = fileOf(wavyMatrix(20, 8), range(0, 20));
        const std::string bytes = encodeStatistics(file);
        auto read = decodeStatistics(bytes, "a.stats");
        QVERIFY(read);
        QCOMPARE(encodeStatistics(*read), bytes);
        QCOMPARE(read->edges.front().edge.value, std::string("layers.0.attn_in"));
        QCOMPARE(read->skipPositions, std::vector<std::int32_t>{0});
        QCOMPARE(read->edges.front().statistics.medianAbs, file.edges.front().statistics.medianAbs);
        QCOMPARE(read->edges.front().statistics.token.incoherence, file.edges.front().statistics.token.incoherence);
    }
    void partsOfOneFileMergeToTheWhole()
    {
        const MatrixD x = wavyMatrix(20, 8);
        StatisticsFile a = fileOf(x, range(12, 20));
        QVERIFY(mergeStatistics(a, fileOf(x, range(0, 12))));
        const Statistics &merged = a.edges.front().statistics, whole = fileOf(x, range(0, 20)).edges.front().statistics;
        QCOMPARE(merged.token.row, whole.token.row);
        QCOMPARE(merged.rowsInFile, std::uint64_t(20));
        QCOMPARE(merged.skipped, std::uint64_t(0));
        QCOMPARE(merged.medianAbs, whole.medianAbs);
        QCOMPARE(merged.at(2.0)->over, whole.at(2.0)->over);
    }
    void twoDumpsAddTheirRows()
    {
        StatisticsFile a = fileOf(wavyMatrix(20, 8), range(0, 20), "a");
        QVERIFY(mergeStatistics(a, fileOf(wavyMatrix(10, 8, 3), range(0, 10), "b")));
        QCOMPARE(a.edges.front().statistics.tokens, std::uint64_t(30));
        QCOMPARE(a.edges.front().statistics.rowsInFile, std::uint64_t(30));
        QCOMPARE(a.fileKey, std::string("a+b"));
    }
    void refusalsNameWhatDiffers_data()
    {
        QTest::addColumn<QString>("change");
        QTest::addColumn<QString>("mention");
        for (auto [change, mention] : {std::pair("tau", "tau"),
                                       {"phase", "phase"},
                                       {"skips", "skip-positions"},
                                       {"width", "K is 8"},
                                       {"rows", "same rows"}})
            QTest::newRow(change) << change << mention;
    }
    void refusalsNameWhatDiffers()
    {
        QFETCH(QString, change);
        QFETCH(QString, mention);
        StatisticsFile a = fileOf(wavyMatrix(20, 8), range(0, 10)),
                       b = fileOf(wavyMatrix(20, change == "width" ? 9 : 8), range(10, 20));
        if (change == "tau")
            b.tau = 5;
        if (change == "phase")
            b.phase = Phase::Decode;
        if (change == "skips")
            b.skipPositions = {};
        if (change == "rows")
            b = a;
        auto refused = mergeStatistics(a, b);
        QVERIFY(!refused);
        QVERIFY2(QString::fromStdString(toText(refused.error())).contains(mention), toText(refused.error()).c_str());
    }
    void everyCutIsRefusedNotRead()
    {
        const std::string bytes = encodeStatistics(fileOf(wavyMatrix(4, 3), range(0, 4)));
        for (std::size_t length = 0; length < bytes.size(); length += length < 600 ? 1 : 4099)
            QVERIFY(!decodeStatistics(std::string_view(bytes).substr(0, length), "cut.stats"));
        QVERIFY(!decodeStatistics(bytes + "x", "long.stats"));
    }
    void hugeCountsAreRefusedBeforeAnythingIsAllocated()
    {
        std::string bytes = encodeStatistics(fileOf(wavyMatrix(4, 3), range(0, 4)));
        for (std::size_t at = 16; at + 8 <= std::min<std::size_t>(bytes.size(), 900); ++at) {
            std::string broken = bytes;
            std::fill_n(broken.begin() + std::ptrdiff_t(at), 8, '\x7f');
            if (auto read = decodeStatistics(broken, "b.stats"))
                QVERIFY(read->edges.size() <= 1);
        }
    }
};

QTEST_GUILESS_MAIN(TestStatisticsFile)
#include "tst_statistics_file.moc"
