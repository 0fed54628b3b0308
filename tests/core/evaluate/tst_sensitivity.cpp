#include <QtTest>

#include <cmath>

#include "core/evaluate/edge_data.h"
#include "core/evaluate/sensitivity.h"
#include "kernels/backend_list.h"
#include "tests/support/candidates.h"
#include "tests/support/weighted_dump.h"

using namespace planish;
using namespace planish::test;

namespace {

// diagonal.md 2.4.
const MatrixD kX = matrixOf({{.5, -.875, 14, .25}, {.875, .25, -7, -.4375}});
const MatrixD kW = matrixOf({{.5, -.25, .125, .875}, {-.875, .75, .0625, .5}, {.25, .4375, -.125, -.375}});
// int4:token: steps 2 and 1 (14 / 7, 7 / 7); xq - x.
const MatrixD kErrorX = matrixOf({{-.5, .875, 0, -.25}, {.125, -.25, 0, .4375}});
// int4:row: steps .125, .125, .0625; .0625 is half a step of its row and goes to 0.
const MatrixD kErrorW = matrixOf({{0, 0, 0, 0}, {0, 0, -.0625, 0}, {0, 0, 0, 0}});

std::vector<double> energies(const MatrixD &matrix)
{
    std::vector<double> sums(matrix.cols(), 0.0);
    for (std::size_t r = 0; r < matrix.rows(); ++r)
        for (std::size_t k = 0; k < matrix.cols(); ++k)
            sums[k] += matrix(r, k) * matrix(r, k);
    return sums;
}

/// ||E||^2 by E = sum_k E_X[:,k] W[:,k]^T + Xq[:,k] E_W[:,k]^T, one channel left out (-1: none).
double error2(const MatrixD &errorX, const MatrixD &errorW, std::int64_t without)
{
    double total = 0;
    for (std::size_t m = 0; m < kX.rows(); ++m) {
        for (std::size_t n = 0; n < kW.rows(); ++n) {
            double e = 0;
            for (std::size_t k = 0; k < kX.cols(); ++k)
                if (static_cast<std::int64_t>(k) != without)
                    e += errorX(m, k) * kW(n, k) + (kX(m, k) + errorX(m, k)) * errorW(n, k);
            total += e * e;
        }
    }
    return total;
}

Sensitivity sensitivity(const MatrixD &x, const std::vector<MatrixD> &weights, const std::string &act, const std::string &weight,
                        const char *backend = "reference")
{
    EvaluateOptions options;
    options.rows.fitRows = options.rows.scoreRows = {{0, static_cast<std::int64_t>(x.rows())}};
    const Opened opened = openedOf(x, weights);
    auto data = loadEdgeData(opened, opened.graph.edges.front(), options, *makeBackend(backend), {});
    if (!data)
        throw std::runtime_error(toText(data.error()));
    const Candidate candidate = candidateOf("none", act, weight);
    auto result = sensitivityOf(**data, energies(x), Part::HeldOut, SpecPair{candidate.act, candidate.weight, {}}, {});
    if (!result)
        throw std::runtime_error(toText(result.error()));
    return *result;
}

bool near(double value, double expected, double relative = 1e-12)
{
    return std::abs(value - expected) <= relative * std::abs(expected);
}

} // namespace

class TestSensitivity : public QObject {
    Q_OBJECT
private slots:
    void splitFollowsElementErrors()
    {
        const Sensitivity s = sensitivity(kX, {kW}, "int4:token", "int4:row");
        const auto ofX = energies(kErrorX), ofW = energies(kW), ofErrorW = energies(kErrorW);
        MatrixD quantized = kX;
        for (std::size_t i = 0; i < quantized.size(); ++i)
            quantized.data()[i] += kErrorX.data()[i];
        const auto ofQuantized = energies(quantized);
        double sum = 0;
        for (std::size_t k = 0; k < 4; ++k) {
            const double expected = ofX[k] * ofW[k] + ofQuantized[k] * ofErrorW[k];
            QVERIFY(near(s.quantization[k], expected));
            sum += expected;
        }
        QVERIFY(near(*s.diagonalRatio, sum / error2(kErrorX, kErrorW, -1)));
        QVERIFY(near(s.damage * s.damage, error2(kErrorX, kErrorW, -1)));
        QVERIFY(near(s.damage / s.reference, s.output.relativeFrobenius));
        QVERIFY(std::abs(s.output.relativeFrobenius - .268829) < 1e-6); // the trace's number
    }
    void contributionsAreSharesOfEnergies()
    {
        const Sensitivity s = sensitivity(kX, {kW}, "int4:token", "none");
        const auto x = energies(kX), w = energies(kW);
        double total = 0, sum = 0;
        for (std::size_t k = 0; k < 4; ++k)
            total += x[k] * w[k];
        for (std::size_t k = 0; k < 4; ++k) {
            QVERIFY(near(s.contribution[k], x[k] * w[k] / total));
            sum += s.contribution[k];
        }
        QVERIFY(near(sum, 1));
    }
    void restoreIsTheExactChange()
    {
        const Sensitivity s = sensitivity(kX, {kW}, "int4:token", "int4:row");
        QCOMPARE(s.restore.size(), std::size_t{4});
        const double whole = error2(kErrorX, kErrorW, -1);
        for (std::size_t i = 0; i < 4; ++i) {
            QVERIFY(near(s.restore[i].restore, (whole - error2(kErrorX, kErrorW, s.restore[i].channel)) / whole, 1e-10));
            if (i > 0)
                QVERIFY(s.restore[i - 1].quantization >= s.restore[i].quantization);
        }
    }
    void oneWrongChannelIsTheWholeError()
    {
        // Only .25 in the second channel is no multiple of its row's step 1 (7 / 7).
        const Sensitivity s =
            sensitivity(matrixOf({{7, .25, 3}, {7, 0, 1}}), {matrixOf({{1, 2, 3}, {4, 5, 6}})}, "int4:token", "none");
        QVERIFY(near(*s.diagonalRatio, 1));
        QCOMPARE(s.restore.front().channel, std::int64_t{1});
        QVERIFY(near(s.restore.front().restore, 1));
        QCOMPARE(s.restore[1].restore, 0.0);
    }
    void largestThirtyTwoAreRestored()
    {
        const Sensitivity s = sensitivity(wavyMatrix(24, 100), {wavyMatrix(8, 100, 2)}, "int4:token", "int4:row", "cpu");
        QCOMPARE(s.restore.size(), std::size_t{32});
        std::vector<double> sorted = s.quantization;
        std::ranges::sort(sorted, std::greater<>());
        for (std::size_t i = 0; i < 32; ++i)
            QCOMPARE(s.restore[i].quantization, sorted[i]);
    }
    void consumersShareTheError()
    {
        const Sensitivity s = sensitivity(kX, {kW, matrixOf({{0, 0, 1, 0}}), kW}, "int4:token", "none");
        QCOMPARE(s.consumers.size(), std::size_t{3});
        QVERIFY(near(s.consumers[0].restore, .5));
        QCOMPARE(s.consumers[1].restore, 0.0); // it reads the exact channel only
        QVERIFY(near(s.consumers[2].restore, .5));
    }
    void withoutQuantizersThereIsNoError()
    {
        const Sensitivity s = sensitivity(kX, {kW}, "none", "none");
        QCOMPARE(s.damage, 0.0);
        QVERIFY(!s.diagonalRatio);
        QVERIFY(s.restore.empty());
    }

    void layersStandByDamage()
    {
        const auto edge = [](const char *id, double damage, double reference) { return EdgeDamage{{id}, damage, reference, {}}; };
        const auto table = damageByLayer({{0, edge("a", 3, 100)}, {1, edge("b", 12, 12)}, {0, edge("c", 4, 10)}});
        QCOMPARE(table.size(), std::size_t{2});
        QCOMPARE(table[0].layer, std::int64_t{1});
        QCOMPARE(table[0].relative, 1.0);
        QCOMPARE(table[1].damage, 5.0);
        QCOMPARE(table[1].edges[0].edge.value, std::string("c"));
        QCOMPARE(table[1].edges[0].relative(), .4);
    }
    void scoresReadByEdgeAndName()
    {
        const auto scores =
            parseScores("edge,name,value\r\nlayers.0.mlp_in,kl,0.25\n\nlayers.0.mlp_in,perplexity, at 2k,1e1\n", "s.csv");
        QVERIFY(scores.has_value());
        QCOMPARE(scores->at("layers.0.mlp_in").at("kl"), .25);
        QCOMPARE(scores->at("layers.0.mlp_in").at("perplexity, at 2k"), 10.0);
        for (const char *bad : {"a,b", "a,b,c", "a,b,nan", ",b,1", "a,b,1x"}) {
            const auto refused = parseScores(bad, "s.csv");
            QVERIFY2(!refused && toText(refused.error()).find("line 1") != std::string::npos, bad);
        }
    }
};

QTEST_GUILESS_MAIN(TestSensitivity)
#include "tst_sensitivity.moc"
