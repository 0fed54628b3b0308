// lowest, knee and within of evaluation.md 8, on evaluations made by hand.
#include <QtTest>

#include "core/plan/choose.h"

using namespace planish;

namespace {

/// 16 rows in 8 units, all with the same relative error, so that two evaluations are tied only when their errors are equal.
Evaluation evaluationOf(const std::string &name, double error, double flops = 0, double bits = 8, std::size_t factors = 0)
{
    Evaluation e;
    e.candidate = name;
    e.output = OutputBlock{.relativeFrobenius = error, .rows = {error, error, error, error}};
    e.ledger.onlineFlopsPerToken = flops;
    e.ledger.weightBits = bits;
    Rewrite rewrite;
    if (factors)
        rewrite.input.operators.push_back({ScaleOp{std::vector<double>(factors, 2.0)}});
    e.rewrite = std::make_shared<const Rewrite>(rewrite);
    auto sums = std::make_shared<ErrorSums>();
    for (std::int32_t row = 0; row < 16; ++row) {
        sums->fileRows.push_back(row);
        sums->rowUnits.push_back(row / 2);
        sums->rowRequests.push_back(row / 2);
        sums->sums.rowError.push_back(error * error);
        sums->sums.rowReference.push_back(1.0);
    }
    e.sums = sums;
    return e;
}

EdgeChoice choiceOf(std::vector<Evaluation> evaluations, std::int64_t elements = 100)
{
    EdgeChoice choice;
    choice.plannable.assign(evaluations.size(), 1);
    choice.evaluations = std::move(evaluations);
    choice.weightElements = elements;
    return choice;
}

} // namespace

class TestChoose : public QObject {
    Q_OBJECT
private slots:
    void lowestTakesTheSmallestError()
    {
        QCOMPARE(chooseLowest(choiceOf({evaluationOf("none", 0.5), evaluationOf("a", 0.2), evaluationOf("b", 0.3)}), RankBy::Pooled), std::size_t(1));
    }

    void aTieGoesToFewerFlopsThenFewerNumbersThenIdentity()
    {
        QCOMPARE(chooseLowest(choiceOf({evaluationOf("none", 0.5), evaluationOf("a", 0.2, 10), evaluationOf("b", 0.2, 0, 8, 9)}), RankBy::Pooled), std::size_t(2));
        QCOMPARE(chooseLowest(choiceOf({evaluationOf("none", 0.5), evaluationOf("a", 0.2, 0, 8, 9), evaluationOf("b", 0.2, 0, 8, 4)}), RankBy::Pooled), std::size_t(2));
        QCOMPARE(chooseLowest(choiceOf({evaluationOf("none", 0.2), evaluationOf("a", 0.2), evaluationOf("b", 0.2)}), RankBy::Pooled), std::size_t(0));
        QCOMPARE(chooseLowest(choiceOf({evaluationOf("none", 0.9), evaluationOf("a", 0.2), evaluationOf("b", 0.2)}), RankBy::Pooled), std::size_t(1));
    }

    void whatIsNotPlannableIsNeverChosen()
    {
        EdgeChoice choice = choiceOf({evaluationOf("none", 0.5), evaluationOf("a", 0.1), evaluationOf("b", 0.3)});
        choice.plannable[1] = 0;
        QCOMPARE(chooseLowest(choice, RankBy::Pooled), std::size_t(2));
        QCOMPARE(chooseKnee(choice), std::size_t(2));
    }

    void theKneeIsFarthestFromTheChord()
    {
        // Front (error, flops): (.1, 100) (.15, 20) (.5, 0); scaled (0,1) (.125,.2) (1,0): the middle one is 0.675 away, .4/10 is dominated.
        QCOMPARE(chooseKnee(choiceOf({evaluationOf("none", 0.5, 0), evaluationOf("a", 0.1, 100), evaluationOf("b", 0.15, 20), evaluationOf("c", 0.4, 30)})),
                 std::size_t(2));
    }

    void aFrontOfOnePointIsThatPoint()
    {
        QCOMPARE(chooseKnee(choiceOf({evaluationOf("none", 0.5, 0), evaluationOf("a", 0.1, 0)})), std::size_t(1));
    }

    void withinTakesTheBestGainPerFlopThatFits()
    {
        std::vector<EdgeChoice> choices = {choiceOf({evaluationOf("none", 0.5), evaluationOf("a", 0.1, 100)}),
                                           choiceOf({evaluationOf("none", 0.4), evaluationOf("a", 0.1, 20)})};
        QVERIFY(chooseWithin(choices, {50.0, {}}).has_value());
        QCOMPARE(choices[0].chosen, std::size_t(0));
        QCOMPARE(choices[1].chosen, std::size_t(1));
        QVERIFY(chooseWithin(choices, {120.0, {}}).has_value());
        QCOMPARE(choices[0].chosen, std::size_t(1));
    }

    void withinKeepsTheMeanOfWeightBits()
    {
        std::vector<EdgeChoice> choices = {choiceOf({evaluationOf("none", 0.5, 0, 4), evaluationOf("a", 0.1, 0, 8)}, 300),
                                           choiceOf({evaluationOf("none", 0.5, 0, 4), evaluationOf("a", 0.2, 0, 8)}, 100)};
        QVERIFY(chooseWithin(choices, {{}, 5.0}).has_value());
        QCOMPARE(choices[0].chosen, std::size_t(0)); // 7 bits in the mean
        QCOMPARE(choices[1].chosen, std::size_t(1)); // 5 bits in the mean
        QVERIFY(!chooseWithin(choices, {{}, 3.0}).has_value());
    }

    void everyStoredNumberIsCounted()
    {
        Rewrite rewrite;
        rewrite.input.shift.assign(4, 0.0);
        rewrite.input.operators = {{ScaleOp{{1, 2, 3, 4}}}, {PermuteOp{{0, 1, 2, 3}}}};
        rewrite.clips = {{Target::Activation, Clip::Kind::Multiplier, {0.5}, {0.5}, 0, false}};
        rewrite.exceptions = Exceptions{StaticExceptions{{1, 2}}};
        rewrite.lowRank = LowRank{1, false, Precision::Fp16, {MatrixD(3, 1)}, {MatrixD(1, 4)}};
        QCOMPARE(fittedNumbers(rewrite), std::int64_t(4 + 4 + 4 + 2 + 2 + 3 + 4));
    }
};

QTEST_GUILESS_MAIN(TestChoose)
#include "tst_choose.moc"
