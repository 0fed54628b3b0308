// Channels that share one factor. Row maps and pairs from diagonal.md 0.5.
#include <QtTest>

#include "core/graph/ties.h"

using namespace planish;

class TiesTest : public QObject {
    Q_OBJECT

private slots:
    void groupedRowMapIsTheTraceOfThePage()
    {
        QCOMPARE(gqaRowMap(4, 2, 2), (std::vector<std::int64_t>{0, 1, 0, 1, 2, 3, 2, 3}));
        QVERIFY(gqaRowMap(9, 2, 64).empty());
    }

    void smollm2AttnOutHas192FreeScales()
    {
        ModelInfo model;
        model.numHeads = 9;
        model.numKvHeads = 3;
        model.headDim = 64;
        const Ties ties = tiesOf("attn_out", 576, model, "half", false);
        QCOMPARE(ties.key, std::string("gqa"));
        QCOMPARE(ties.count, std::size_t(192));
        QCOMPARE(ties.set[64], std::int32_t(0)); // head 1 reads key-value head 0
        QCOMPARE(ties.set[3 * 64], std::int32_t(64));
    }

    void oneQueryPerKeyIsFree()
    {
        ModelInfo model;
        model.numHeads = model.numKvHeads = 12;
        model.headDim = 32;
        QVERIFY(tiesOf("attn_out", 384, model, "none", false).set.empty());
        QCOMPARE(tiesOf("mlp_in", 384, model, "half", false).key, std::string("none"));
    }

    void ropePairsAreHalvesOrNeighbours()
    {
        QCOMPARE(ropePairs(6, 6, false), (std::vector<std::int64_t>{0, 1, 2, 0, 1, 2}));
        QCOMPARE(ropePairs(6, 6, true), (std::vector<std::int64_t>{0, 0, 1, 1, 2, 2}));
        QCOMPARE(ropePairs(6, 4, false), (std::vector<std::int64_t>{0, 1, 0, 1, 4, 5})); // partial RoPE: the rest is free
        QCOMPARE(ropePairs(4, 0, false), (std::vector<std::int64_t>{0, 1, 2, 3}));
    }

    void queryHeadsOfOneKeyShareItsFactors()
    {
        ModelInfo model;
        model.numHeads = 4;
        model.numKvHeads = 2;
        model.headDim = 2;
        const Ties query = tiesOf("q_pre", 8, model, "half", false), key = tiesOf("k_pre", 4, model, "half", false);
        QCOMPARE(query.set, (std::vector<std::int32_t>{0, 0, 0, 0, 1, 1, 1, 1}));
        QCOMPARE(key.set, (std::vector<std::int32_t>{0, 0, 1, 1}));
        // A q_norm has one gain for all heads.
        QCOMPARE(tiesOf("q_pre", 8, model, "half", true).count, std::size_t(1));
    }

    void unknownHeadsGiveNoTies() { QVERIFY(tiesOf("attn_out", 576, ModelInfo{}, "half", false).set.empty()); }

    void equalInSetsAllowsRoundingOnly()
    {
        Ties ties;
        ties.set = {0, 1, 0};
        ties.count = 2;
        QVERIFY(equalInSets(ties, std::vector<double>{2, 5, 2 * (1 + 1e-15)}));
        QVERIFY(!equalInSets(ties, std::vector<double>{2, 5, 2.0001}));
        QVERIFY(equalInSets(Ties{}, std::vector<double>{1, 2}));
    }
};

QTEST_GUILESS_MAIN(TiesTest)
#include "tst_ties.moc"
