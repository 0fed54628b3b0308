#include <QtTest>

#include <Eigen/SVD>

#include "tests/support/operators.h"

using namespace planish;
using namespace planish::test;

namespace {

/// Singular values of the dense product: what the factors must agree with.
std::pair<double, double> extremesOf(const Transform &t)
{
    const MatrixD p = applyToActivations(t, identityMatrix(channelsOf(t.operators.front())).view());
    Eigen::MatrixXd dense(static_cast<Eigen::Index>(p.rows()), static_cast<Eigen::Index>(p.cols()));
    for (std::size_t r = 0; r < p.rows(); ++r)
        for (std::size_t c = 0; c < p.cols(); ++c)
            dense(static_cast<Eigen::Index>(r), static_cast<Eigen::Index>(c)) = p(r, c);
    const Eigen::VectorXd values = Eigen::JacobiSVD<Eigen::MatrixXd>(dense).singularValues();
    return {values.minCoeff(), values.maxCoeff()};
}

Operator named(const char *wanted)
{
    for (const auto &[name, op] : everyOperator())
        if (name == wanted)
            return op;
    return Operator{IdentityOp{24}};
}

} // namespace

class TestConditioning : public QObject {
    Q_OBJECT

private slots:
    void singleOperatorsAreExact()
    {
        for (const auto &[name, op] : everyOperator()) {
            const Transform t{{}, {op}};
            const auto [smallest, largest] = extremesOf(t);
            const Conditioning c = t.conditioning();
            QVERIFY2(!c.kappaIsBound, name.c_str());
            QVERIFY2(std::abs(c.sigmaMin / smallest - 1.0) < 1e-10, name.c_str());
            QVERIFY2(std::abs(c.sigmaMax / largest - 1.0) < 1e-10, name.c_str());
            QVERIFY2(c.inverseResidual < 1e-12 && c.orthogonalityResidual < 1e-12, name.c_str());
        }
    }

    void diagonalTimesOrthogonalIsExact()
    {
        const Transform t{{}, {named("permute"), named("scale"), named("hadamard signs"), named("rotation")}};
        const auto [smallest, largest] = extremesOf(t);
        const Conditioning c = t.conditioning();
        QVERIFY(!c.kappaIsBound);
        QVERIFY(std::abs(c.kappa / (largest / smallest) - 1.0) < 1e-10);
        QCOMPARE(c.kappaNonDiagonal, 1.0);
        QCOMPARE(c.scaleMin, 0.25);
        QCOMPARE(c.scaleMax, 23.25);
    }

    void scalesThatCancelAreSeenAsOne()
    {
        const Operator scale = named("scale");
        const Transform t{{}, {scale, named("permute"), *inverseOf(named("permute")), *inverseOf(scale)}};
        QVERIFY(std::abs(t.conditioning().kappa - 1.0) < 1e-12);
        QVERIFY(!t.conditioning().kappaIsBound);
    }

    void blockFactorsAreExactTogether()
    {
        const Transform t{{}, {named("scale"), named("block dense"), *blockHadamardFor(24, 2), named("scale")}};
        const auto [smallest, largest] = extremesOf(t);
        const Conditioning c = t.conditioning();
        QVERIFY(!c.kappaIsBound);
        QVERIFY(std::abs(c.kappa / (largest / smallest) - 1.0) < 1e-9);
    }

    void otherProductsAreABoundThatHolds()
    {
        const Transform t{{}, {named("scale"), named("kronecker"), named("scale")}};
        const auto [smallest, largest] = extremesOf(t);
        const Conditioning c = t.conditioning();
        QVERIFY(c.kappaIsBound);
        QVERIFY(c.kappa >= largest / smallest);
        QVERIFY(c.sigmaMin <= smallest && c.sigmaMax >= largest);
        QVERIFY(std::abs(c.kappaNonDiagonal - 16.0) < 1e-9); // two factors of kappa 4
    }

    void aWrongInverseShowsInTheResidual()
    {
        DenseOp dense = denseWithKappa(6, 3.0, "wrong");
        dense.inverse(2, 3) += 0.01;
        QVERIFY((Transform{{}, {Operator{dense}}}.conditioning().inverseResidual) > 1e-3);
        MatrixD almost = identityMatrix(4);
        almost(0, 1) = 0.01;
        const DenseOp claimed{almost, transposed(almost), true};
        QVERIFY((Transform{{}, {Operator{claimed}}}.conditioning().orthogonalityResidual) > 1e-3);
    }

    void theIdentityHasKappaOne()
    {
        const Conditioning c = Transform{}.conditioning();
        QCOMPARE(c.kappa, 1.0);
        QCOMPARE(c.scaleMin, 1.0);
        QCOMPARE(c.inverseResidual, 0.0);
    }
};

QTEST_GUILESS_MAIN(TestConditioning)
#include "tst_conditioning.moc"
