// The backend table, the start-up self tests, equal codes of all backends and equal bits for any thread count.
#include <QtTest>

#include "kernels/cpu/self_test.h"
#include "tests/support/quantized.h"

using namespace planish;

namespace {

MatrixD outliers(std::size_t rows, std::size_t cols)
{
    MatrixD out(rows, cols);
    std::uint64_t state = 7;
    for (std::size_t i = 0; i < out.size(); ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        out.data()[i] = (static_cast<double>(state >> 40) / 16777216.0 - .5) * (i % cols == 3 ? 40.0 : 1.0);
    }
    return out;
}

std::vector<NumberGrid> everyGrid()
{
    std::vector<NumberGrid> grids;
    for (int format = 1; format <= static_cast<int>(NumberFormat::NvFp4); ++format) {
        for (const Sharing sharing : {Sharing::Tensor, Sharing::Row, Sharing::Channel, Sharing::Group}) {
            grids.push_back({.format = static_cast<NumberFormat>(format), .sharing = sharing, .group = 24});
        }
    }
    for (int dialect = 0; dialect <= static_cast<int>(Dialect::Free); ++dialect) {
        for (const ClipRule clip :
             {ClipRule{}, ClipRule{ClipKind::Mse, 1.0}, ClipRule{ClipKind::Percentile, .99}, ClipRule{ClipKind::Fixed, .8}}) {
            grids.push_back({.format = NumberFormat::Int4,
                             .sharing = Sharing::Group,
                             .group = 32,
                             .dialect = static_cast<Dialect>(dialect),
                             .clip = clip,
                             .stepType = StepType::F16});
        }
    }
    return grids;
}

} // namespace

class TestBackends : public QObject {
    Q_OBJECT
private slots:
    void tableNamesAllThreeInOrder()
    {
        const auto rows = listBackends();
        QCOMPARE(rows.size(), std::size_t(3));
        QCOMPARE(rows[0].key, std::string("cpu"));
        QCOMPARE(rows[1].key, std::string("cuda"));
        QCOMPARE(rows[2].key, std::string("reference"));
        QVERIFY(rows[0].usable && rows[2].usable);
        QVERIFY(rows[0].label.starts_with("CPU, ") && rows[0].label.find(" cores, ") != std::string::npos);
        for (const BackendInfo &row : rows) {
            QVERIFY(!row.reason.empty());
            const auto made = makeBackend(row.key);
            QCOMPARE(made.has_value(), row.usable);
            QVERIFY(made ? (*made)->info().key == row.key : !made.error().message.empty());
        }
        QVERIFY(!makeBackend("gpu"));
    }
    void labelCountsTheThreadsAskedFor() { QVERIFY((*makeBackend("cpu", 1))->info().label.starts_with("CPU, 1 of ")); }
    void integerSelfTestReportsItsPath()
    {
        const auto test = cpu::selfTestInt8Gemm();
        QCOMPARE(test.path == cpu::IntegerPath::Int8, test.passed);
        QVERIFY(!test.sentence.empty());
        QVERIFY(listBackends()[0].reason.find(test.sentence) != std::string::npos);
    }
    void integerProductsAreExactOnEveryPath()
    {
        Matrix<std::int8_t> a(70, 1200), b(33, 1200);
        for (std::size_t i = 0; i < a.size(); ++i) {
            a.data()[i] = static_cast<std::int8_t>(i % 5 == 0 ? -128 : 127 - static_cast<int>(i % 3));
        }
        for (std::size_t i = 0; i < b.size(); ++i) {
            b.data()[i] = static_cast<std::int8_t>(i % 7 == 0 ? -127 : 126 + static_cast<int>(i % 2));
        }
        // Path Float32 leaves f32 exactness here (K 128 127 > 2^24) and must notice.
        for (const auto path : {cpu::selfTestInt8Gemm().path, cpu::IntegerPath::Float32}) {
            const auto product = cpu::integerProduct(std::as_const(a).view(), std::as_const(b).view(), path);
            QVERIFY(product.has_value());
            for (std::size_t m = 0; m < a.rows(); ++m) {
                for (std::size_t n = 0; n < b.rows(); ++n) {
                    std::int64_t sum = 0;
                    for (std::size_t k = 0; k < a.cols(); ++k) {
                        sum += std::int64_t(a(m, k)) * b(n, k);
                    }
                    QCOMPARE(std::int64_t((*product)(m, n)), sum);
                }
            }
        }
    }
    void smallCodesAreExactThroughFloat()
    {
        Matrix<std::int8_t> a(3, 500), b(520, 500);
        for (std::size_t i = 0; i < a.size(); ++i) {
            a.data()[i] = static_cast<std::int8_t>(static_cast<int>(i % 15) - 7);
        }
        for (std::size_t i = 0; i < b.size(); ++i) {
            b.data()[i] = static_cast<std::int8_t>(static_cast<int>(i % 13) - 6);
        }
        const auto product = *cpu::integerProduct(std::as_const(a).view(), std::as_const(b).view(), cpu::IntegerPath::Float32);
        for (std::size_t n = 0; n < b.rows(); ++n) {
            std::int32_t sum = 0;
            for (std::size_t k = 0; k < a.cols(); ++k) {
                sum += a(2, k) * b(n, k);
            }
            QCOMPARE(product(2, n), sum);
        }
    }
    void allBackendsGiveEqualCodes()
    {
        const MatrixD x = outliers(33, 100);
        const auto reference = test::backendNamed("reference"), cpu = test::backendNamed("cpu");
        for (const NumberGrid &grid : everyGrid()) {
            const auto a = test::quantizeOn(*reference, x, {.grid = grid}), b = test::quantizeOn(*cpu, x, {.grid = grid});
            QVERIFY(a.result.codes.size() == x.size());
            QVERIFY2(a.result.codes == b.result.codes && a.result.steps == b.result.steps && a.result.zeros == b.result.zeros &&
                         a.values == b.values && a.result.counts.squaredError == b.result.counts.squaredError,
                     qPrintable(QString("format %1 sharing %2").arg(int(grid.format)).arg(int(grid.sharing))));
        }
    }
    void threadsDoNotChangeBits()
    {
        const MatrixD x = outliers(600, 160), w = outliers(700, 160);
        const auto run = [&](int threads) {
            const auto backend = test::backendNamed("cpu", threads);
            const auto a = *backend->upload(x.view()), b = *backend->upload(w.view());
            const auto product = *backend->download(**backend->product(*a, *b));
            const std::vector<OperatorStep> steps = {HadamardStep{.block = 32}};
            const auto moved = *backend->download(**backend->transform(*a, {}, steps, Side::Activation));
            const auto quantized = test::quantizeOn(*backend, x, {.grid = {.format = NumberFormat::NvFp4}});
            return std::tuple(product, moved, quantized.values, quantized.result.counts.squaredError,
                              quantized.result.counts.energy);
        };
        const auto one = run(1);
        QVERIFY(run(2) == one);
        QVERIFY(run(5) == one);
    }
    void productEqualsTheNaiveLoop()
    {
        const MatrixD x = outliers(300, 50), w = outliers(600, 50);
        for (const char *key : {"cpu", "reference"}) {
            const auto backend = test::backendNamed(key);
            const auto y = *backend->download(**backend->product(**backend->upload(x.view()), **backend->upload(w.view())));
            for (std::size_t m = 0; m < x.rows(); m += 7) {
                for (std::size_t n = 0; n < w.rows(); n += 11) {
                    double sum = 0.0;
                    for (std::size_t k = 0; k < x.cols(); ++k) {
                        sum += x(m, k) * w(n, k);
                    }
                    QVERIFY(std::fabs(y(m, n) - sum) <= 1e-12);
                }
            }
        }
    }
    void enumsAnswerForEveryFormat()
    {
        int integers = 0, blocks = 0;
        for (int f = 1; f <= static_cast<int>(NumberFormat::NvFp4); ++f) {
            const auto format = static_cast<NumberFormat>(f);
            QVERIFY(bitsOf(format) >= 2 && bitsOf(format) <= 8);
            integers += isInteger(format) ? 1 : 0;
            blocks += isBlockFormat(format) ? 1 : 0;
        }
        QCOMPARE(integers, 7);
        QCOMPARE(blocks, 7);
        QCOMPARE(bitsOf(NumberFormat::None), 0);
        QVERIFY(isAsymmetric(Dialect::Zero) && isAsymmetric(Dialect::Raw) && isAsymmetric(Dialect::Free));
        QVERIFY(!isAsymmetric(Dialect::Signed) && !isAsymmetric(Dialect::Narrow));
    }
};

QTEST_GUILESS_MAIN(TestBackends)
#include "tst_backends.moc"
