// Operator steps on both sides: Hadamard traces, the master identity, and cpu = reference.
#include <QtTest>

#include "kernels/cpu/hadamard.h"
#include "tests/support/quantized.h"

using namespace planish;
using planish::test::allNear;
using planish::test::matrixOf;

namespace {

MatrixD waves(std::size_t rows, std::size_t cols, double frequency)
{
    MatrixD out(rows, cols);
    for (std::size_t i = 0; i < out.size(); ++i) {
        out.data()[i] = std::sin(frequency * static_cast<double>(i)) + (i % 17 == 0 ? 5.0 : 0.0);
    }
    return out;
}

/// The check matrix of rotation.md 2.4: Paley I, order 12.
Matrix<std::int8_t> paley12()
{
    const char *rows[12] = {"++++++++++++", "-+-+---+++-+", "-++-+---+++-", "--++-+---+++", "-+-++-+---++", "-++-++-+---+",
                            "-+++-++-+---", "--+++-++-+--", "---+++-++-+-", "----+++-++-+", "-+---+++-++-", "--+---+++-++"};
    Matrix<std::int8_t> table(12, 12);
    for (std::size_t i = 0; i < 12; ++i) {
        for (std::size_t j = 0; j < 12; ++j) {
            table(i, j) = rows[i][j] == '+' ? 1 : -1;
        }
    }
    return table;
}

} // namespace

class TestTransforms : public QObject {
    Q_OBJECT
private slots:
    void initTestCase_data()
    {
        QTest::addColumn<QString>("backend");
        QTest::newRow("reference") << "reference";
        QTest::newRow("cpu") << "cpu";
    }
    void init()
    {
        QFETCH_GLOBAL(QString, backend);
        m_backend = test::backendNamed(backend.toStdString());
    }

    void sylvesterFollowsTheTrace()
    {
        HadamardStep step{.block = 8};
        const auto plain = transform(matrixOf({{1, 0, -1, 2, 64, 0, 1, -1}}), {step}, Side::Activation);
        QVERIFY(allNear(plain.values(),
                        {23.334524, 22.627417, 22.627417, 23.334524, -21.92031, -24.041631, -22.627417, -20.506097}, 1e-6));
        step.signs = {1, -1, 1, 1, -1, 1, -1, 1};
        const auto randomised = transform(matrixOf({{1, 0, -1, 2, 64, 0, 1, -1}}), {step}, Side::Activation);
        QVERIFY(allNear(randomised.values(),
                        {-22.627417, -23.334524, -21.92031, -21.213203, 24.041631, 21.92031, 21.92031, 24.041631}, 1e-6));
        HadamardStep back = step;
        back.inverse = true;
        QVERIFY(allNear(transform(randomised, {back}, Side::Activation).values(), {1, 0, -1, 2, 64, 0, 1, -1}, 1e-13));
    }
    void tableTimesPowerOfTwoFollowsTheTrace()
    {
        MatrixD x(1, 24);
        x(0, 5) = 12;
        x(0, 17) = -6;
        const HadamardStep step{.block = 24, .table = paley12()};
        const MatrixD y = transform(x, {step}, Side::Activation);
        QVERIFY(allNear(y.row(0).first(6), {1.224745, -1.224745, -3.674235, 3.674235, 1.224745, -1.224745}, 1e-6));
        for (const double v : y.values()) {
            QVERIFY(std::fabs(std::fabs(std::fabs(v) - 2.449490) - 1.224745) < 1e-6);
        }
        HadamardStep inverse = step;
        inverse.inverse = true;
        QVERIFY(allNear(transform(y, {inverse}, Side::Activation).values(), x.values(), 1e-13));
    }
    void smallBlocksStayApart()
    {
        MatrixD x(1, 16);
        x(0, 5) = 2.0;
        const MatrixD y = transform(x, {HadamardStep{.block = 4}}, Side::Activation);
        for (std::size_t k = 0; k < 16; ++k) {
            QCOMPARE(std::fabs(y(0, k)), k / 4 == 1 ? 1.0 : 0.0);
        }
    }
    void sidesUseInverseTranspose()
    {
        // rotation.md 1.3: P = [[2,1],[0,1]] with its X', W'.
        BlockDenseStep p;
        p.blocks = {matrixOf({{2, 1}, {0, 1}})};
        p.inverseTransposed = {matrixOf({{.5, 0}, {-.5, 1}})};
        p.assignment = {0};
        const MatrixD x = transform(matrixOf({{1, 2}, {3, -1}}), {p}, Side::Activation);
        const MatrixD w = transform(matrixOf({{1, -1}, {2, 0}, {0, 3}}), {p}, Side::Weight);
        QCOMPARE(x, matrixOf({{2, 3}, {6, 2}}));
        QCOMPARE(w, matrixOf({{1, -1}, {1, 0}, {-1.5, 3}}));
    }
    void chainsKeepTheProduct()
    {
        const MatrixD x = waves(37, 48, .37), w = waves(29, 48, .71);
        ScaleStep scale;
        PermuteStep permute;
        for (std::size_t k = 0; k < 48; ++k) {
            scale.divisor.push_back(k % 7 == 3 ? -.5 : 1.0 + static_cast<double>(k));
            permute.perm.push_back(static_cast<std::int64_t>((k * 11) % 48));
        }
        HadamardStep hadamard{.block = 24, .table = paley12()};
        hadamard.signs.assign(48, 1);
        hadamard.signs[5] = hadamard.signs[31] = -1;
        BlockDenseStep dense;
        dense.blocks = {matrixOf({{2, 1}, {0, 1}}), matrixOf({{1, 0}, {3, 1}})};
        dense.inverseTransposed = {matrixOf({{.5, 0}, {-.5, 1}}), matrixOf({{1, -3}, {0, 1}})};
        for (int b = 0; b < 24; ++b) {
            dense.assignment.push_back(b % 2);
        }
        const std::vector<OperatorStep> steps = {scale, permute, hadamard, dense};
        const MatrixD before = product(x, w);
        const MatrixD after = product(transform(x, steps, Side::Activation), transform(w, steps, Side::Weight));
        QVERIFY(allNear(after.values(), before.values(), 1e-10));
    }
    void shiftActsOnActivationsOnly()
    {
        const std::vector<double> shift = {1, -2};
        const auto x = m_backend->upload(matrixOf({{3, 3}}).view());
        const auto moved = m_backend->download(**m_backend->transform(**x, shift, {}, Side::Activation));
        QCOMPARE(*moved, matrixOf({{2, 5}}));
        const auto kept = m_backend->download(**m_backend->transform(**x, shift, {}, Side::Weight));
        QCOMPARE(*kept, matrixOf({{3, 3}}));
    }
    void wrongShapesAreRefused()
    {
        const auto x = m_backend->upload(matrixOf({{1, 2, 3}}).view());
        const std::vector<OperatorStep> wrong[] = {{ScaleStep{{1, 2}}},
                                                   {PermuteStep{{0, 0, 1}}},
                                                   {HadamardStep{.block = 3}},
                                                   {BlockDenseStep{{matrixOf({{1}})}, {matrixOf({{1}})}, {0, 0, 1}}}};
        for (const auto &steps : wrong) {
            const auto result = m_backend->transform(**x, {}, steps, Side::Activation);
            QVERIFY(!result && result.error().code == StatusCode::ShapeMismatch);
        }
    }
    void floatRowsEqualTheDoubleTransform()
    {
        for (const std::size_t length : {1, 2, 16, 64, 128, 256, 1024, 4096, 8192}) {
            const MatrixD x = waves(3, length, .37);
            const MatrixD expected = transform(x, {HadamardStep{.block = length}}, Side::Activation);
            std::vector<float> in(x.values().begin(), x.values().end()), out(in.size());
            cpu::hadamardRows(in.data(), out.data(), 3, length, cpu::Workers(2));
            cpu::hadamardRows(in.data(), in.data(), 3, length, cpu::Workers(1)); // in place
            QCOMPARE(in, out);
            QVERIFY(allNear(std::vector<double>(out.begin(), out.end()), expected.values(), 2e-5));
        }
    }

private:
    MatrixD transform(const MatrixD &x, const std::vector<OperatorStep> &steps, Side side)
    {
        return *m_backend->download(**m_backend->transform(**m_backend->upload(x.view()), {}, steps, side));
    }
    MatrixD product(const MatrixD &a, const MatrixD &b)
    {
        return *m_backend->download(**m_backend->product(**m_backend->upload(a.view()), **m_backend->upload(b.view())));
    }

    std::shared_ptr<const Backend> m_backend;
};

QTEST_GUILESS_MAIN(TestTransforms)
#include "tst_transforms.moc"
