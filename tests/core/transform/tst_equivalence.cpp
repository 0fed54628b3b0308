#include <QtTest>

#include "core/transform/equivalence.h"
#include "kernels/backend_list.h"
#include "tests/support/operators.h"

using namespace planish;
using namespace planish::test;

namespace {

/// X, W, b of one consumer and a transform of them, with room for planted defects.
struct Case {
    MatrixD x = randomMatrix(40, 24, "x"), weight = randomMatrix(10, 24, "w"), bias = randomMatrix(1, 10, "b");
    MatrixD xPrime, transformed, transformedBias;

    explicit Case(const Transform &t)
    {
        xPrime = applyToActivations(t, x.view());
        transformed = *applyToWeights(t, weight.view());
        transformedBias = applyToBias(t, weight.view(), &bias);
    }
    Equivalence measure(double kappa = 1.0, StoredType type = StoredType::F16, bool exempt = false) const
    {
        const auto backend = *makeBackend("reference");
        return *measureEquivalence(*backend, x.view(), xPrime.view(),
                                   {{"layers.0.q_proj", &weight, &transformed, &bias, &transformedBias, type, exempt}}, kappa);
    }
};

const std::vector<double> kShift = {1, -2, 3, 0, .5, 1, 1, 1, -1, -1, 2, 2, 0, 0, 4, 1, -3, 1, 1, 1, 1, 1, 1, 2};

} // namespace

class TestEquivalence : public QObject {
    Q_OBJECT

private slots:
    void everyOperatorAndEveryPairPasses()
    {
        const auto all = everyOperator();
        for (const auto &[firstName, first] : all) {
            for (const auto &[secondName, second] : all) {
                const Transform t = Transform{kShift, {first}}.then(Transform{kShift, {second}});
                const Equivalence e = Case(t).measure(t.conditioning().kappaNonDiagonal);
                QVERIFY2(e.passed, (firstName + " + " + secondName + ": " + std::to_string(e.relativeFrobenius)).c_str());
                QVERIFY2(e.relativeFrobenius <= e.threshold, firstName.c_str());
            }
            const Transform single{{}, {first}};
            QVERIFY2(Case(single).measure(single.conditioning().kappaNonDiagonal).relativeFrobenius <= 1e-12 * 20.0,
                     firstName.c_str());
        }
    }

    void badlyConditionedFactorsStayBelowTheirThreshold() // rotation.md 12.5
    {
        for (const double kappa : {1.0, 10.0, 1e2, 1e3, 1e4}) {
            const Transform t{{}, {Operator{denseWithKappa(24, kappa, "kappa")}}};
            const Equivalence e = Case(t).measure(kappa);
            QVERIFY2(e.passed, std::to_string(kappa).c_str());
            QCOMPARE(e.threshold, 1e-12 * kappa);
        }
    }

    void inverseInsteadOfInverseTransposeIsCaught()
    {
        const DenseOp dense = denseWithKappa(24, 3.0, "defect");
        Case planted(Transform{{}, {Operator{dense}}});
        planted.transformed = times(planted.weight, dense.inverse); // W P^-1
        QVERIFY(!planted.measure(3.0).passed);
    }

    void swappedKroneckerFactorsAreCaught()
    {
        const auto share = [](std::size_t order, const char *id) {
            return std::make_shared<const Operator>(Operator{denseWithKappa(order, 2.0, id)});
        };
        const auto first = share(4, "a"), second = share(6, "b");
        Case planted(Transform{{}, {Operator{KroneckerOp{first, second}}}});
        planted.transformed = *applyToWeights(Transform{{}, {Operator{KroneckerOp{second, first}}}}, planted.weight.view());
        QVERIFY(!planted.measure(4.0).passed);
    }

    void aRotationAppliedTwiceToOneSideIsCaught()
    {
        const Operator h = *blockHadamardFor(24, 8);
        Case planted(Transform{{}, {h}});
        planted.transformed = *applyToWeights(Transform{{}, {h, h}}, planted.weight.view());
        QVERIFY(!planted.measure().passed);
    }

    void aSylvesterAppliedTwiceToBothSidesPasses() // rotation.md 1.4: only the basis hash can see it
    {
        const Operator h = *blockHadamardFor(24, 8);
        const Case twice(Transform{{}, {h, h}});
        QVERIFY(twice.measure().passed);
        QVERIFY(distance(twice.xPrime, twice.x) < 1e-12);
    }

    void aMissingBiasIsCaught()
    {
        Case planted(Transform{kShift, {Operator{ScaleOp{std::vector<double>(24, 2.0)}}}});
        QVERIFY(planted.measure().passed);
        planted.transformedBias = planted.bias; // W c forgotten
        QVERIFY(!planted.measure().passed);
    }

    void aBiasFromTheScaledWeightIsCaught() // diagonal.md 0.1
    {
        const Transform t{kShift, {Operator{ScaleOp{std::vector<double>(24, 2.0)}}}};
        Case planted(t);
        planted.transformedBias = applyToBias(t, planted.transformed.view(), &planted.bias);
        QVERIFY(!planted.measure().passed);
    }

    void aConstantRowIsForgivenOnlyWhereSoftmaxForgivesIt()
    {
        Case planted(Transform{kShift, {}});
        planted.transformedBias = planted.bias;
        QVERIFY(!planted.measure().passed);
        QVERIFY(planted.measure(1.0, StoredType::F16, true).passed);
    }

    void measuresAreTheOnesOfTheirTable() // rotation.md 1.2, by hand: Y = [3, 4], Y' = [3, 4.5]
    {
        const MatrixD x = matrixOf({{1}}), w = matrixOf({{3}, {4}}), wPrime = matrixOf({{3}, {4.5}});
        const auto backend = *makeBackend("reference");
        const Equivalence e =
            *measureEquivalence(*backend, x.view(), x.view(), {{"a", &w, &wPrime, nullptr, nullptr, StoredType::F64}}, 1.0);
        QVERIFY(std::abs(e.relativeFrobenius - 0.1) < 1e-15);
        QVERIFY(std::abs(e.maxAbs - 0.5) < 1e-15);
        QVERIFY(std::abs(e.maxRel - 0.125) < 1e-15);
        QVERIFY(std::abs(e.floor - 1e-3 * std::sqrt(12.5)) < 1e-15);
        QVERIFY(!e.passed);
        QCOMPARE(e.rows, std::int64_t{1});
    }

    void theWorstConsumerCounts()
    {
        const MatrixD x = matrixOf({{1}}), w = matrixOf({{1}}), near = matrixOf({{1.0 + 1e-6}}), far = matrixOf({{1.1}});
        const auto backend = *makeBackend("reference");
        const Equivalence e = *measureEquivalence(*backend, x.view(), x.view(),
                                                  {{"near", &w, &near, nullptr, nullptr, StoredType::F64},
                                                   {"far", &w, &far, nullptr, nullptr, StoredType::F64},
                                                   {"same", &w, &w, nullptr, nullptr, StoredType::F64}},
                                                  1.0);
        QCOMPARE(e.worstConsumer, std::string("far"));
        QVERIFY(std::abs(e.relativeFrobenius - 0.1) < 1e-12);
    }

    void storedRoundingHappensOnce()
    {
        const Transform t{{}, {*hadamardFor(24)}};
        const Equivalence half = Case(t).measure(1.0, StoredType::F16);
        QVERIFY(half.storedPassed && half.storedRelativeFrobenius > 5e-5 && half.storedRelativeFrobenius < 1e-3);
        QCOMPARE(half.storedDtype, std::string("float16"));
        QCOMPARE(half.storedThreshold, 1e-3);
        const Equivalence brain = Case(t).measure(1.0, StoredType::Bf16);
        QVERIFY(brain.storedPassed && brain.storedRelativeFrobenius > 5e-4 && brain.storedRelativeFrobenius < 8e-3);
        const Equivalence single = Case(t).measure(1.0, StoredType::F32);
        QVERIFY(single.storedPassed && single.storedRelativeFrobenius > 1e-9 && single.storedRelativeFrobenius < 5e-6);
        QVERIFY(half.passed && brain.passed && single.passed);
        // round once: 1 + 2^-8 + 2^-33 is 1.0078125 in bf16, 1 through float32 (formats.md 1.1)
        QCOMPARE(roundToStored(1.0 + 0x1p-8 + 0x1p-33, StoredType::Bf16), 1.0078125);
    }

    void overflowInTheStoredTypeFailsOnlyTheStoredCheck()
    {
        std::vector<double> divisor(24, 1.0);
        divisor[3] = 1e6; // W column above 65504
        const Equivalence e = Case(Transform{{}, {Operator{ScaleOp{divisor}}}}).measure();
        QVERIFY(e.passed);
        QVERIFY(!e.storedPassed);
    }

    void notANumberFails()
    {
        Case planted(Transform{});
        planted.transformed(2, 2) = NAN;
        const Equivalence e = planted.measure();
        QVERIFY(!e.passed);
        QVERIFY(std::isinf(e.relativeFrobenius));
    }

    void thresholdsAreThoseOfThePlan()
    {
        QCOMPARE(equivalenceThreshold(StoredType::F64, 0.5), 1e-12);
        QCOMPARE(equivalenceThreshold(StoredType::F64, 100), 1e-12 * 100);
        QCOMPARE(equivalenceThreshold(StoredType::F32, 10), 5e-6 * 10);
        QCOMPARE(equivalenceThreshold(StoredType::F16, 1e4), 1e-3);
        QCOMPARE(equivalenceThreshold(StoredType::Bf16, 1e4), 8e-3);
    }
};

QTEST_GUILESS_MAIN(TestEquivalence)
#include "tst_equivalence.moc"
