// The error form against a naive triple loop, its terms, its exact sides, threads and tiles.
#include <QtTest>

#include "tests/support/quantized.h"

using namespace planish;

namespace {

MatrixD noise(std::size_t rows, std::size_t cols, std::uint64_t seed)
{
    MatrixD out(rows, cols);
    for (double &v : out.values()) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        v = static_cast<double>(seed >> 11) / 9007199254740992.0 - .5;
    }
    return out;
}

/// One edge quantized: everything a residual needs.
struct Edge {
    ResidentPtr x, w, y;
    Quantized qx, qw;
};

Edge edgeOn(const Backend &backend, std::size_t rows, std::size_t outputs, std::size_t channels)
{
    const MatrixD x = noise(rows, channels, 1), w = noise(outputs, channels, 2);
    QuantizeRequest request{.grid = {.format = NumberFormat::Int4}};
    Edge edge;
    edge.x = *backend.upload(x.view());
    edge.w = *backend.upload(w.view());
    edge.y = *backend.product(*edge.x, *edge.w);
    edge.qx = *backend.quantize(*edge.x, request);
    edge.qw = *backend.quantize(*edge.w, request);
    return edge;
}

ResidualSums sumsOf(const Backend &backend, const Edge &e, TermDetail detail = TermDetail::All)
{
    return *backend.residual(e.qx.error.get(), *e.x, *e.qx.reconstructed, e.qw.error.get(), *e.w, *e.y, detail, {});
}

double total(const std::vector<double> &values)
{
    double sum = 0.0;
    for (const double v : values) {
        sum += v;
    }
    return sum;
}

MatrixD naiveProduct(const MatrixD &a, const MatrixD &b)
{
    MatrixD out(a.rows(), b.rows());
    for (std::size_t m = 0; m < a.rows(); ++m) {
        for (std::size_t n = 0; n < b.rows(); ++n) {
            for (std::size_t k = 0; k < a.cols(); ++k) {
                out(m, n) += a(m, k) * b(n, k);
            }
        }
    }
    return out;
}

bool equalBits(const ResidualSums &a, const ResidualSums &b)
{
    return a.rowError == b.rowError && a.rowReference == b.rowReference && a.outputError == b.outputError &&
           a.outputReference == b.outputReference && a.rowActivationOnly == b.rowActivationOnly &&
           a.rowWeightOnly == b.rowWeightOnly && a.rowCross == b.rowCross && a.rowDot == b.rowDot &&
           a.rowEstimate == b.rowEstimate && a.maxAbs == b.maxAbs && a.maxRow == b.maxRow && a.maxOutput == b.maxOutput;
}

} // namespace

class TestResidual : public QObject {
    Q_OBJECT
private slots:
    void initTestCase_data()
    {
        QTest::addColumn<QString>("backend");
        QTest::addColumn<double>("tolerance");
        QTest::newRow("reference") << "reference" << 1e-12;
        QTest::newRow("cpu") << "cpu" << 2e-5;
    }
    void init()
    {
        QFETCH_GLOBAL(QString, backend);
        QFETCH_GLOBAL(double, tolerance);
        m_backend = test::backendNamed(backend.toStdString());
        m_tolerance = tolerance;
    }

    void termsEqualTheNaiveSums()
    {
        const Edge edge = edgeOn(*m_backend, 70, 45, 96);
        const auto get = [this](const ResidentPtr &m) { return *m_backend->download(*m); };
        const MatrixD x = get(edge.x), w = get(edge.w), xq = get(edge.qx.reconstructed), wq = get(edge.qw.reconstructed);
        MatrixD ex(x.rows(), x.cols()), ew(w.rows(), w.cols());
        std::transform(xq.values().begin(), xq.values().end(), x.data(), ex.data(), std::minus<>());
        std::transform(wq.values().begin(), wq.values().end(), w.data(), ew.data(), std::minus<>());
        const MatrixD y = naiveProduct(x, w), yq = naiveProduct(xq, wq);
        const MatrixD a = naiveProduct(ex, w), b = naiveProduct(x, ew), c = naiveProduct(ex, ew);
        const ResidualSums sums = sumsOf(*m_backend, edge);
        double largest = 0.0;
        for (std::size_t m = 0; m < y.rows(); ++m) {
            double error = 0, reference = 0, first = 0, second = 0, third = 0, dot = 0, estimate = 0;
            for (std::size_t n = 0; n < y.cols(); ++n) {
                const double e = yq(m, n) - y(m, n);
                error += e * e;
                reference += y(m, n) * y(m, n);
                first += a(m, n) * a(m, n);
                second += b(m, n) * b(m, n);
                third += c(m, n) * c(m, n);
                dot += yq(m, n) * y(m, n);
                estimate += yq(m, n) * yq(m, n);
                largest = std::max(largest, std::fabs(e));
            }
            QVERIFY(near(sums.rowError[m], error) && near(sums.rowReference[m], reference));
            QVERIFY(near(sums.rowActivationOnly[m], first) && near(sums.rowWeightOnly[m], second) &&
                    near(sums.rowCross[m], third));
            QVERIFY(near(sums.rowEstimate[m], estimate) && std::fabs(sums.rowDot[m] - dot) <= m_tolerance * estimate);
        }
        QVERIFY(near(sums.maxAbs, largest));
        QVERIFY(near(std::fabs(yq(sums.maxRow, sums.maxOutput) - y(sums.maxRow, sums.maxOutput)), largest));
        QVERIFY(near(total(sums.outputError), total(sums.rowError)) &&
                near(total(sums.outputReference), total(sums.rowReference)));
    }
    void errorOnlyAgreesWithAllTerms()
    {
        const Edge edge = edgeOn(*m_backend, 300, 40, 64);
        const ResidualSums all = sumsOf(*m_backend, edge), only = sumsOf(*m_backend, edge, TermDetail::ErrorOnly);
        QVERIFY(near(total(only.rowError), total(all.rowError)));
        QVERIFY(only.rowCross.empty());
    }
    void exactSidesLeaveOneTerm()
    {
        const Edge e = edgeOn(*m_backend, 20, 30, 40);
        const auto activationOnly =
            *m_backend->residual(e.qx.error.get(), *e.x, *e.qx.reconstructed, nullptr, *e.w, *e.y, TermDetail::All, {});
        QCOMPARE(activationOnly.rowError, activationOnly.rowActivationOnly);
        QCOMPARE(total(activationOnly.rowWeightOnly), 0.0);
        const auto weightOnly = *m_backend->residual(nullptr, *e.x, *e.x, e.qw.error.get(), *e.w, *e.y, TermDetail::All, {});
        QCOMPARE(weightOnly.rowError, weightOnly.rowWeightOnly);
        const auto nothing = *m_backend->residual(nullptr, *e.x, *e.x, nullptr, *e.w, *e.y, TermDetail::All, {});
        QCOMPARE(total(nothing.rowError), 0.0);
        QVERIFY(total(nothing.rowReference) > 0.0);
    }
    void bitsDoNotDependOnThreads()
    {
        QFETCH_GLOBAL(QString, backend);
        const auto one = test::backendNamed(backend.toStdString(), 1);
        const ResidualSums expected = sumsOf(*one, edgeOn(*one, 530, 1100, 72));
        for (const int threads : {2, 5}) {
            const auto many = test::backendNamed(backend.toStdString(), threads);
            QVERIFY(equalBits(sumsOf(*many, edgeOn(*many, 530, 1100, 72)), expected));
        }
    }
    void previewRowsEqualExactRows()
    {
        // The first rows alone give the bits they have among all rows: a short tile is padded.
        if (m_backend->info().key != "cpu") {
            return;
        }
        const Edge all = edgeOn(*m_backend, 300, 64, 96);
        const ResidualSums whole = sumsOf(*m_backend, all);
        const auto firstRows = [this](const ResidentPtr &m) {
            const MatrixD values = *m_backend->download(*m);
            return *m_backend->upload(values.view().middleRows(0, 48));
        };
        Edge few{firstRows(all.x), all.w, firstRows(all.y), {}, all.qw};
        few.qx = *m_backend->quantize(*few.x, {.grid = {.format = NumberFormat::Int4}});
        const ResidualSums part = sumsOf(*m_backend, few);
        QVERIFY(std::equal(part.rowError.begin(), part.rowError.end(), whole.rowError.begin()));
    }
    void mismatchedShapesAreRefused()
    {
        const Edge e = edgeOn(*m_backend, 4, 5, 6);
        const auto wrong = m_backend->residual(nullptr, *e.x, *e.x, nullptr, *e.x, *e.y, TermDetail::All, {});
        QVERIFY(!wrong && wrong.error().code == StatusCode::ShapeMismatch);
    }
    void stopRequestCancels()
    {
        const Edge e = edgeOn(*m_backend, 4, 5, 6);
        std::stop_source source;
        source.request_stop();
        const auto stopped = m_backend->residual(nullptr, *e.x, *e.x, nullptr, *e.w, *e.y, TermDetail::All, source.get_token());
        QVERIFY(!stopped && stopped.error().code == StatusCode::Cancelled);
    }

private:
    bool near(double value, double expected) const { return std::fabs(value - expected) <= m_tolerance * std::fabs(expected); }

    std::shared_ptr<const Backend> m_backend;
    double m_tolerance = 0.0;
};

QTEST_GUILESS_MAIN(TestResidual)
#include "tst_residual.moc"
