#include <QtTest>

#include <nlohmann/json.hpp>

#include "core/run/run_diff.h"
#include "tests/support/weighted_dump.h"

using namespace planish;
using namespace planish::test;

namespace {

const std::string kFiles[2] = {"a.h5", "b.h5"};

Finding finding(const std::string &id, std::optional<double> stability)
{
    Finding found;
    found.id = id;
    found.stability = stability;
    return found;
}

EdgeAnalysis edgeOf(const MatrixD &x, std::vector<Finding> findings = {})
{
    EdgeAnalysis edge;
    edge.edge = {"layers.0.mlp_in"};
    edge.statistics = std::make_shared<const Statistics>(statisticsOf(x.view()));
    edge.concentration = concentrationOf(*edge.statistics);
    edge.findings = std::move(findings);
    return edge;
}

/// Small rows with one channel of magnitude `spike`.
MatrixD spiked(std::size_t channels, double spike)
{
    MatrixD x(12, channels);
    for (std::size_t m = 0; m < x.rows(); ++m)
        for (std::size_t k = 0; k < channels; ++k)
            x(m, k) = k == 3 ? spike : 1.0;
    return x;
}

Expected<Difference> differenceBetween(const MatrixD &a, const MatrixD &b, const std::vector<std::string> &edges = {})
{
    const auto engine = Engine::create({});
    if (!engine)
        return tl::make_unexpected(engine.error());
    const std::vector<std::int32_t> requests{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2};
    return runDiff(**engine, openedOf(a, {wavyMatrix(4, a.cols())}, requests), openedOf(b, {wavyMatrix(4, b.cols())}, requests),
                   {edges, {}}, {}, {});
}

} // namespace

class TestDiff : public QObject {
    Q_OBJECT
private slots:
    void findingsAreGainedLostAndKept()
    {
        const EdgeAnalysis before = edgeOf(spiked(8, 2), {finding("kept", .1), finding("lost", 1.0), finding("shaky loss", .7)});
        const EdgeAnalysis after = edgeOf(spiked(8, 2), {finding("gained", 1.0), finding("kept", 1.0), finding("unknown", {})});
        const FindingChanges changes = differenceOf(&before, &after, kFiles).findings;
        QCOMPARE(changes.gained, (std::vector<std::string>{"gained", "unknown"}));
        QCOMPARE(changes.lost, (std::vector<std::string>{"lost", "shaky loss"}));
        QCOMPARE(changes.kept, std::vector<std::string>{"kept"});
        QCOMPARE(changes.withinStability, (std::vector<std::string>{"unknown", "shaky loss"}));
    }
    void shiftedChannelsStandByTheirChange()
    {
        MatrixD moved = spiked(8, 2);
        moved(0, 6) = -9;
        moved(5, 1) = 4;
        const EdgeAnalysis before = edgeOf(spiked(8, 2)), after = edgeOf(moved);
        const auto shift = differenceOf(&before, &after, kFiles).channelShift;
        QCOMPARE(shift.size(), std::size_t{2}); // channels that did not move are no shift
        QCOMPARE(shift[0].channel, std::int64_t{6});
        QCOMPARE(shift[0].before, 1.0);
        QCOMPARE(shift[0].after, 9.0);
        QCOMPARE(shift[1].channel, std::int64_t{1});
    }
    void otherWidthsShareNoChannels()
    {
        const EdgeAnalysis before = edgeOf(spiked(8, 2)), after = edgeOf(spiked(9, 2));
        QVERIFY(differenceOf(&before, &after, kFiles).channelShift.empty());
    }
    void missingEdgeNamesItsFile()
    {
        const EdgeAnalysis edge = edgeOf(spiked(8, 2));
        const EdgeDifference first = differenceOf(&edge, nullptr, kFiles), second = differenceOf(nullptr, &edge, kFiles);
        QCOMPARE(first.onlyIn, kFiles[0]);
        QCOMPARE(second.onlyIn, kFiles[1]);
        QVERIFY(first.maxToMedian[0] && !first.maxToMedian[1]);
        QVERIFY(!second.maxToMedian[0] && second.maxToMedian[1]);
        QVERIFY(second.findings.gained.empty());
    }

    void plantedOutlierIsGained()
    {
        const auto difference = differenceBetween(spiked(40, 1), spiked(40, 50));
        QVERIFY2(difference.has_value(), difference ? "" : toText(difference.error()).c_str());
        QCOMPARE(difference->edges.size(), std::size_t{1});
        const EdgeDifference &edge = difference->edges.front();
        QCOMPARE(*edge.maxToMedian[0], 1.0);
        QCOMPARE(*edge.maxToMedian[1], 50.0);
        QCOMPARE(edge.channelShift.front().channel, std::int64_t{3});
        const auto &gained = edge.findings.gained;
        QVERIFY(std::ranges::any_of(gained, [](const std::string &id) { return id.starts_with("persistent_channel"); }));
    }
    void fileAgainstItselfChangesNothing()
    {
        const auto difference = differenceBetween(spiked(40, 50), spiked(40, 50));
        QVERIFY(difference.has_value());
        const EdgeDifference &edge = difference->edges.front();
        QVERIFY(edge.channelShift.empty() && edge.findings.gained.empty() && edge.findings.lost.empty());
        QVERIFY(!edge.findings.kept.empty());
        QCOMPARE(*edge.c1pct[0], *edge.c1pct[1]);
    }
    void unknownEdgeIsAUsageError()
    {
        const auto difference = differenceBetween(spiked(8, 1), spiked(8, 1), {"layers.9.nothing"});
        QVERIFY(!difference && difference.error().code == ErrorCode::Usage);
    }
    void jsonHoldsPairsInFileOrder()
    {
        const EdgeAnalysis before = edgeOf(spiked(8, 2)), after = edgeOf(spiked(8, 6));
        Difference difference{{kFiles[0], kFiles[1]}, {differenceOf(&before, &after, kFiles)}, {}};
        difference.edges.push_back(differenceOf(&before, nullptr, kFiles));
        const auto json = toJson(difference);
        QCOMPARE(json["schema"].get<std::string>(), std::string("planish.difference/1"));
        QCOMPARE(json["files"][1].get<std::string>(), kFiles[1]);
        QVERIFY(json["edges"][0]["only_in"].is_null());
        QCOMPARE(json["edges"][0]["max_to_median"][0].get<double>(), 2.0);
        QCOMPARE(json["edges"][0]["max_to_median"][1].get<double>(), 6.0);
        QCOMPARE(json["edges"][0]["channel_shift"][0]["max_abs"][1].get<double>(), 6.0);
        QVERIFY(json["edges"][1]["mean_incoherence"][1].is_null());
        QVERIFY(json["edges"][1]["findings"]["lost"].is_array());
    }
    void csvHasOneRowAnEdge()
    {
        QTemporaryDir folder;
        const EdgeAnalysis edge = edgeOf(spiked(8, 2), {finding("x", 1.0)});
        Difference difference{
            {kFiles[0], kFiles[1]}, {differenceOf(&edge, nullptr, kFiles), differenceOf(&edge, &edge, kFiles)}, {}};
        const QString file = folder.filePath("d.csv");
        QVERIFY(writeDifferenceCsv(difference, file.toStdString()).has_value());
        QFile stream(file);
        QVERIFY(stream.open(QIODevice::ReadOnly));
        const QStringList lines = QString::fromUtf8(stream.readAll()).trimmed().split('\n');
        QCOMPARE(lines.size(), 3);
        QVERIFY(lines[1].startsWith("layers.0.mlp_in,a.h5,2,,"));
        QVERIFY(lines[2].endsWith(",0,0,1,0"));
        QCOMPARE(lines[1].count(','), lines[0].count(','));
    }
};

QTEST_GUILESS_MAIN(TestDiff)
#include "tst_diff.moc"
