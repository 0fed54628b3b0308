#include <QtTest>

#include <cmath>

#include "core/evaluate/compare.h"
#include "core/evaluate/jackknife.h"

using namespace planish;

namespace {

const std::vector<double> kError = {1, 2, 0.5, 3, 1.5, 0.25, 4, 2, 1, 0.75, 2.5, 1.25, 0.5, 6, 1, 0.3};
const std::vector<double> kReference = {100, 120, 80, 150, 90, 60, 200, 110, 95, 70, 130, 105, 50, 240, 85, 40};

ErrorSums sumsOf(const std::vector<double> &error, const std::vector<double> &reference,
                 const std::vector<std::int32_t> &requests = {})
{
    ErrorSums sums;
    sums.sums.rowError = error;
    sums.sums.rowReference = reference;
    for (std::size_t m = 0; m < error.size(); ++m) {
        sums.fileRows.push_back(static_cast<std::int64_t>(m));
        sums.rowRequests.push_back(requests.empty() ? 0 : requests[m]);
        sums.rowUnits.push_back(0);
    }
    return sums;
}

Evaluation evaluationOf(const std::string &name, const std::vector<double> &error, const std::vector<double> &reference)
{
    Evaluation e;
    e.candidate = name;
    auto sums = std::make_shared<ErrorSums>(sumsOf(error, reference));
    e.output = OutputBlock{};
    e.output->relativeFrobenius = sums->relativeFrobenius();
    e.output->rows = rowFigures(*sums);
    std::vector<double> sorted = reference;
    std::sort(sorted.rbegin(), sorted.rend());
    e.output->topRowsShare = sorted.front() / sums->reference2();
    e.output->tokenDominated = e.output->topRowsShare > .5;
    e.sums = std::move(sums);
    return e;
}

std::vector<double> scaled(std::vector<double> values, double factor)
{
    for (double &value : values)
        value *= factor;
    return values;
}

std::vector<std::pair<std::string, int>> tiesOf(const std::vector<RankEntry> &ranking)
{
    std::vector<std::pair<std::string, int>> list;
    for (const RankEntry &entry : ranking)
        list.emplace_back(entry.name, entry.tie);
    return list;
}

using Ranked = std::vector<std::pair<std::string, int>>;

} // namespace

class TestRanking : public QObject {
    Q_OBJECT
private slots:
    void jackknifeMatchesAnIndependentComputation() // plain Python over 8 blocks of two rows
    {
        const auto u = uncertaintyOf(sumsOf(kError, kReference));
        QCOMPARE(u->unit, std::string("block"));
        QCOMPARE(u->units, std::int64_t{8});
        QVERIFY(std::abs(u->standardError - 0.006539830762511785) < 1e-15);
        QVERIFY(std::abs(u->low - 0.11091223676881182) < 1e-10);
        QVERIFY(std::abs(u->high - 0.1418407216135076) < 1e-10);
    }
    void pairedDifferenceMatchesAnIndependentComputation()
    {
        std::vector<double> other;
        for (std::size_t i = 0; i < kError.size(); ++i)
            other.push_back(kError[i] * 1.1 + .01 * static_cast<double>(i));
        const auto d = pairedDifference(sumsOf(kError, kReference), sumsOf(other, kReference), RankBy::Pooled);
        QVERIFY(std::abs(d.difference + 0.008767030145922505) < 1e-15);
        QVERIFY(std::abs(d.standardError - 0.0006765345828147372) < 1e-15);
        QVERIFY(std::abs(d.low + 0.01036678022748744) < 1e-10);
        QVERIFY(!d.tied);
    }
    void eightRequestsAreTheUnits()
    {
        std::vector<std::int32_t> requests;
        for (std::int32_t m = 0; m < 16; ++m)
            requests.push_back(7 - m / 2);
        const auto units = jackknifeUnits(sumsOf(kError, kReference, requests));
        QCOMPARE(units.name, std::string("request"));
        QCOMPARE(units.count, std::size_t{8});
    }
    void fewRowsAreOneUnitEachAndOneRowHasNone()
    {
        QCOMPARE(jackknifeUnits(sumsOf({1, 2, 3}, {4, 5, 6})).count, std::size_t{3});
        QVERIFY(!uncertaintyOf(sumsOf({1}, {4})));
        QVERIFY(!pairedDifference(sumsOf({1}, {4}), sumsOf({1.01}, {4}), RankBy::Pooled).tied);
    }
    void blocksAreEqualToOneRow()
    {
        std::vector<double> rows(13, 1.0);
        const auto units = jackknifeUnits(sumsOf(rows, rows));
        std::vector<int> sizes(units.count);
        for (std::size_t m = 0; m < units.ofRow.size(); ++m) {
            ++sizes[static_cast<std::size_t>(units.ofRow[m])];
            QVERIFY(m == 0 || units.ofRow[m] >= units.ofRow[m - 1]);
        }
        const auto [low, high] = std::minmax_element(sizes.begin(), sizes.end());
        QCOMPARE(units.count, std::size_t{8});
        QVERIFY(*high - *low <= 1);
    }
    void studentQuantilesMatchTables() // NIST tables, three decimals
    {
        QVERIFY(std::abs(studentQuantile(1) - 12.706) < 5e-4);
        QVERIFY(std::abs(studentQuantile(7) - 2.365) < 5e-4);
        QVERIFY(std::abs(studentQuantile(30) - 2.042) < 5e-4);
        QVERIFY(std::abs(studentQuantile(31) - 2.040) < 5e-4);
        QVERIFY(std::abs(studentQuantile(63) - 1.998) < 5e-4);
        QVERIFY(std::abs(studentQuantile(1000000) - 1.960) < 5e-4);
    }
    void clearlyBetterIsAhead()
    {
        const auto ranking = rankEvaluations(
            {evaluationOf("none", kError, kReference), evaluationOf("better", scaled(kError, .25), kReference)}, RankBy::Auto);
        QCOMPARE(tiesOf(ranking), (Ranked{{"better", 0}, {"none", 1}}));
    }
    void noisyDifferenceIsATie()
    {
        std::vector<double> noisy = kError;
        for (std::size_t i = 0; i < noisy.size(); ++i)
            noisy[i] *= (i / 2) % 2 ? 1.6 : .5;
        const auto ranking =
            rankEvaluations({evaluationOf("none", kError, kReference), evaluationOf("noisy", noisy, kReference)}, RankBy::Auto);
        QCOMPARE(ranking[0].tie, ranking[1].tie);
    }
    void dominatedEdgeTiesWhenTheTypicalRowDisagrees()
    {
        // Every other row owns the norm, so no block decides alone; the typical row is set by hand to disagree, then to agree.
        std::vector<double> reference(16, 1.0), none(16, .01), smooth(16, .02);
        for (std::size_t m = 0; m < 16; m += 2) {
            reference[m] = 400;
            none[m] = 40;
            smooth[m] = 4;
        }
        std::vector<Evaluation> list = {evaluationOf("none", none, reference), evaluationOf("smooth", smooth, reference)};
        for (Evaluation &e : list)
            e.output->tokenDominated = true;
        list[1].output->rows.rms = list[0].output->rows.rms * 1.3;
        const auto pooled = rankEvaluations(list, RankBy::Pooled);
        QCOMPARE(tiesOf(pooled), (Ranked{{"smooth", 0}, {"none", 1}}));
        const auto automatic = rankEvaluations(list, RankBy::Auto);
        QCOMPARE(tiesOf(automatic), (Ranked{{"smooth", 0}, {"none", 0}}));
        QVERIFY(automatic[1].reason.find("by rows.rms none is better") != std::string::npos);
        list[1].output->rows.rms = list[0].output->rows.rms * .5; // agrees
        QCOMPARE(tiesOf(rankEvaluations(list, RankBy::Auto)), (Ranked{{"smooth", 0}, {"none", 1}}));
    }
    void refusedCandidatesAreNotRanked()
    {
        Evaluation refused;
        refused.candidate = "refused";
        refused.status = EvaluationStatus::Refused;
        QCOMPARE(rankEvaluations({evaluationOf("none", kError, kReference), refused}, RankBy::Auto).size(), std::size_t{1});
    }
    void paretoKeepsWhatNothingDominates()
    {
        std::vector<Evaluation> list = {evaluationOf("none", kError, kReference),
                                        evaluationOf("online", scaled(kError, .5), kReference),
                                        evaluationOf("worse and online", scaled(kError, .8), kReference)};
        list[1].ledger.onlineFlopsPerToken = 10;
        list[2].ledger.onlineFlopsPerToken = 10;
        QCOMPARE(paretoOf(list), (std::vector<std::size_t>{0, 1}));
    }
    void totalsAverageOverTheEdgesWhereACandidateIsOk()
    {
        EdgeComparison first{.edge = {"a"}}, second{.edge = {"b"}};
        for (EdgeComparison *edge : {&first, &second}) {
            edge->evaluations = {evaluationOf("none", kError, kReference),
                                 evaluationOf("better", scaled(kError, .25), kReference)};
            edge->evaluations[0].gain = 1;
            edge->evaluations[1].gain = edge == &first ? 2 : 8;
            edge->ranking = rankEvaluations(edge->evaluations, RankBy::Auto);
        }
        second.evaluations[0].status = EvaluationStatus::Failed;
        const auto totals = totalsOf({{.name = "none"}, {.name = "better"}, {.name = "absent"}}, {first, second});
        QVERIFY(std::abs(totals[0].meanRelative - first.evaluations[0].output->relativeFrobenius) < 1e-15);
        QVERIFY(std::abs(totals[1].geometricGain - 4) < 1e-12);
        QCOMPARE(totals[1].wins, 2);
        QCOMPARE(totals[0].wins, 0);
        QVERIFY(std::isnan(totals[2].meanRelative));
    }
};

QTEST_GUILESS_MAIN(TestRanking)
#include "tst_ranking.moc"
