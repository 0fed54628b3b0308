#include <QtTest>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/transform/random_orthogonal.h"
#include "core/transform/random_stream.h"
#include "tests/support/matrices.h"

using namespace planish;
using namespace planish::test;

/// Expected values come from an independent Python program (hashlib and integer arithmetic).
class TestRandomStream : public QObject {
    Q_OBJECT

private slots:
    void drawsFollowTheDocumentedSeeding()
    {
        RandomStream stream(0, "signs", "layers.2.mlp_down");
        QCOMPARE(stream.next(), std::uint64_t{0xa373ddbc7bf48838});
        QCOMPARE(stream.next(), std::uint64_t{0x76740f120006eb5a});
        QCOMPARE(stream.next(), std::uint64_t{0x4df97f621381750e});
        QCOMPARE(stream.next(), std::uint64_t{0x5cd56185da4a3b8d});
    }

    void signIsTheTopBit()
    {
        RandomStream stream(0, "signs", "layers.2.mlp_down");
        QCOMPARE(randomSigns(stream, 16), (std::vector<std::int8_t>{-1, 1, 1, 1, 1, 1, -1, -1, -1, -1, 1, 1, 1, -1, 1, 1}));
    }

    void uniformHasFiftyThreeBitsAndNeverZero()
    {
        RandomStream stream(7, "haar", "stream:residual");
        QCOMPARE(stream.uniform(), 0.09098999090392501);
        QCOMPARE(stream.uniform(), 0.26535946388969134);
        QCOMPARE(stream.uniform(), 0.7473484675092938);
        for (int i = 0; i < 10000; ++i) {
            const double u = stream.uniform();
            QVERIFY(u > 0.0 && u <= 1.0);
        }
    }

    void normalGivesCosineThenSine()
    {
        RandomStream stream(7, "haar", "stream:residual");
        for (const double expected : {-0.2109750612660364, 2.1793350042356003, 0.4832221504049906, 0.5907146349933782})
            QVERIFY(std::abs(stream.normal() - expected) < 1e-14);
    }

    void belowRejectsAndShuffleGoesFromTheEnd()
    {
        RandomStream control(3, "control", "x");
        for (const std::uint64_t expected : {2, 4, 3, 3, 2, 4, 2, 3, 1, 0, 0, 1})
            QCOMPARE(control.below(7), expected);
        RandomStream rejecting(3, "control", "x"); // almost half of all draws are rejected
        for (const std::uint64_t expected :
             {1465993545789699530ULL, 3597038785869305701ULL, 4720771164306692404ULL, 6781898571507931949ULL})
            QCOMPARE(rejecting.below((std::uint64_t{1} << 63) + 1), std::uint64_t{expected});
        std::vector<std::int64_t> values(10);
        std::iota(values.begin(), values.end(), 0);
        RandomStream(3, "topk_random", "x").shuffle(values);
        QCOMPARE(values, (std::vector<std::int64_t>{9, 3, 1, 0, 8, 6, 5, 2, 4, 7}));
    }

    void seedPurposeAndIdEachChangeTheStream()
    {
        std::set<std::uint64_t> first;
        first.insert(RandomStream(0, "signs", "a").next());
        first.insert(RandomStream(1, "signs", "a").next());
        first.insert(RandomStream(0, "signs#2", "a").next());
        first.insert(RandomStream(0, "signs", "b").next());
        QCOMPARE(first.size(), std::size_t{4});
    }

    void orthogonalFactorHasItsSignsFixed() // rotation.md 2.5
    {
        const MatrixD q = orthogonalFactor(matrixOf({{3, 1}, {4, 2}}));
        QVERIFY(distance(q, matrixOf({{.6, -.8}, {.8, .6}})) < 1e-15);
    }

    void haarMatrixIsOrthogonalAndReproducible()
    {
        for (const std::size_t order : {1, 2, 7, 64, 130}) {
            RandomStream a(4, "haar", "e"), b(4, "haar", "e");
            const MatrixD q = randomOrthogonal(a, order);
            QVERIFY(distance(outputs(q, q), identityMatrix(order)) < 1e-13);
            QCOMPARE(q, randomOrthogonal(b, order));
        }
    }

    void haarDiagonalHasNoPreferredSign() // without the sign fix the diagonal of Q is biased
    {
        int positive = 0;
        for (std::uint64_t seed = 0; seed < 400; ++seed) {
            RandomStream stream(seed, "haar", "bias");
            positive += randomOrthogonal(stream, 2)(0, 0) > 0.0 ? 1 : 0;
        }
        QVERIFY(std::abs(positive - 200) < 60); // 6 standard deviations
    }
};

QTEST_GUILESS_MAIN(TestRandomStream)
#include "tst_random_stream.moc"
