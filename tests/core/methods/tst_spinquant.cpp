// Learned rotations: gradients against central differences, exact Cayley steps on the traces of rotation.md 5.2, and what a fit keeps.
#include <QtTest>

#include <cmath>

#include "core/methods/rotation_objectives.h"
#include "tests/support/fit_inputs.h"
#include "tests/support/matrices.h"

using namespace planish;
using namespace planish::test;

namespace {

Dense dense(const MatrixD &m) { return Eigen::Map<const Dense>(m.data(), Eigen::Index(m.rows()), Eigen::Index(m.cols())); }

double norm(const Dense &m) { return std::sqrt(m.squaredNorm()); }

} // namespace

class TestSpinquant : public QObject {
    Q_OBJECT
private slots:
    void gradientsMatchCentralDifferences_data()
    {
        QTest::addColumn<int>("kind");
        const char *names[] = {"l4", "lp", "kurtosis", "softmax", "whip", "peak"};
        for (int i = 0; i < 6; ++i)
            QTest::newRow(names[i]) << i;
    }
    void gradientsMatchCentralDifferences()
    {
        QFETCH(int, kind);
        const learned::ObjectiveOptions options{learned::Objective(kind), 3.5, 2, 5};
        const Dense x = learned::normalisedRows(randomMatrix(7, 5, "x").view());
        Dense r = dense(randomMatrix(5, 5, "r")), g;
        learned::objectiveValue(x, r, options, &g);
        double worst = 0;
        for (Eigen::Index i = 0; i < r.size(); ++i) {
            constexpr double kStep = 1e-6;
            Dense up = r, down = r;
            up.data()[i] += kStep;
            down.data()[i] -= kStep;
            const double slope = (learned::objectiveValue(x, up, options, nullptr) - learned::objectiveValue(x, down, options, nullptr)) / (2 * kStep);
            worst = std::max(worst, std::abs(slope - g.data()[i]));
        }
        QVERIFY2(worst < 1e-6 * std::max(1.0, norm(g)), qPrintable(QString::number(worst)));
    }

    void cayleyStepFollowsTheTrace()
    {
        const Dense r = Dense::Identity(2, 2), g = dense(matrixOf({{1, 2}, {-1, .5}}));
        const Dense skew = g * r.transpose() - r * g.transpose();
        const Dense c = learned::cayleyStep(r, skew, .2);
        const Dense expected = dense(matrixOf({{.83486, -.55046}, {.55046, .83486}}));
        QVERIFY((c - expected).cwiseAbs().maxCoeff() < 1e-5);
    }

    void l4DescendsAsTheTraceSays()
    {
        const Dense x = learned::normalisedRows(matrixOf({{3, 1}}).view());
        Dense r = Dense::Identity(2, 2);
        const learned::ObjectiveOptions options;
        const double expected[] = {3.28, 2.536572, 2.072033, 2.003516, 2.000142};
        for (double value : expected) {
            Dense g;
            QVERIFY(std::abs(learned::objectiveValue(x, r, options, &g) - value) < 1e-6);
            r = learned::cayleyStep(r, g * r.transpose() - r * g.transpose(), .05);
        }
    }

    void aThousandStepsStayOrthogonal()
    {
        const Dense x = learned::normalisedRows(randomMatrix(9, 6, "rows").view());
        Dense r = Dense::Identity(6, 6);
        for (int i = 0; i < 1000; ++i) {
            Dense g;
            learned::objectiveValue(x, r, {}, &g);
            r = learned::cayleyStep(r, g * r.transpose() - r * g.transpose(), .01);
        }
        QVERIFY(learned::orthogonalityResidual(r) < 1e-12);
    }

    void aFitKeepsAnOrthogonalMatrixAndItsRecord()
    {
        auto fit = fitOf(randomMatrix(24, 8, "fit"), {randomMatrix(6, 8, "w")}, "int4:token", "int4:row");
        auto rewrite = fitMethod(*fit, "spinquant", {"gain=keep", "steps=30"});
        QVERIFY2(rewrite.has_value(), rewrite ? "" : toText(rewrite.error()).c_str());
        const auto &op = std::get<DenseOp>(rewrite->input.operators.front().value);
        QVERIFY(op.orthogonal);
        QVERIFY(learned::orthogonalityResidual(dense(op.matrix)) < 1e-12);
        QVERIFY(rewrite->training.has_value());
        QVERIFY(rewrite->training->finalObjective <= rewrite->training->startObjective);
        QVERIFY(!rewrite->training->curve.empty());
    }
};

QTEST_GUILESS_MAIN(TestSpinquant)
#include "tst_spinquant.moc"
