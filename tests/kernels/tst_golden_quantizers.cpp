// Quantizers of real tensors against independent NumPy numbers and codes of official code.
#include <QtTest>

#include "kernels/share_grid.h"
#include "tests/support/kernel_goldens.h"
#include "tests/support/quantized.h"

using namespace planish;

class TestGoldenQuantizers : public QObject {
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

    void everySpecGivesTheGoldenNumbers()
    {
        QVERIFY(m_goldens["errors"].size() > 140);
        for (const auto &entry : m_goldens["errors"]) {
            const MatrixD x = m_goldens.matrix(entry.at("input"));
            QuantizeRequest request{.grid = test::gridOf(entry)};
            FixedRanges ranges;
            if (request.grid.timing == Timing::Static) {
                const MatrixD calibration = m_goldens.matrix(entry.at("calibration"));
                const Range range = rangeOf(calibration.values());
                ranges = {clippedRange(request.grid, calibration.values(), range)};
                request.ranges = request.grid.format == NumberFormat::NvFp4 ? nullptr : &ranges;
                request.tensorScaleMax = request.grid.format == NumberFormat::NvFp4 ? std::max(-range.lo, range.hi) : -1.0;
            }
            compare(entry, test::quantizeOn(*m_backend, x, request));
        }
    }
    void officialCodesDifferAtTiesOnly()
    {
        for (const auto &entry : m_goldens["dialects"]) {
            const MatrixD expected = m_goldens.matrix(entry.at("codes"));
            const NumberGrid grid = test::gridOf(entry);
            const auto back = test::quantizeOn(*m_backend, m_goldens.matrix(entry.at("input")), {.grid = grid});
            // Offset codes of the official code are stored from 0.
            const int shift = grid.dialect == Dialect::Offset && entry.at("has_zeros") ? 7 : 0;
            int different = 0;
            for (std::size_t i = 0; i < expected.size(); ++i) {
                const int distance = std::abs(back.result.codes.data()[i] + shift - static_cast<int>(expected.data()[i]));
                QVERIFY2(distance <= 1, qPrintable(QString::fromStdString(entry.at("name"))));
                different += distance;
            }
            QVERIFY2(different <= entry.at("near_ties").get<int>(),
                     qPrintable(QString::fromStdString(entry.at("name")) + QString(": %1").arg(different)));
        }
    }

private:
    void compare(const nlohmann::json &entry, const test::QuantizedBack &back)
    {
        const QByteArray name =
            QByteArray::fromStdString(entry.at("input").get<std::string>() + " " + entry.at("spec").get<std::string>());
        const QuantizeCounts &counts = back.result.counts;
        long sum = 0, sumAbs = 0;
        for (const int code : test::codesOf(back)) {
            sum += code;
            sumAbs += std::abs(code);
        }
        double checksum = 0.0;
        for (const double step : back.result.steps) {
            checksum += step;
        }
        const auto near = [](double value, double expected, double relative) {
            return std::fabs(value - expected) <= relative * std::fabs(expected);
        };
        QVERIFY2(sum == entry.at("sum_codes").get<long>() && sumAbs == entry.at("sum_abs_codes").get<long>(), name);
        QVERIFY2(near(checksum, entry.at("scale_checksum"), 1e-12) &&
                     back.result.steps.size() == entry.at("scale_count").get<std::size_t>(),
                 name);
        QVERIFY2(near(counts.squaredError, entry.at("squared_error"), 1e-12), name);
        QVERIFY2(near(std::sqrt(counts.squaredError / counts.energy), entry.at("relative_frobenius"), 1e-12), name);
        const auto elements = static_cast<double>(counts.elements);
        QVERIFY2(near(static_cast<double>(counts.zeroed) / elements, entry.at("zeroed_fraction"), 1e-12), name);
        QVERIFY2(near(static_cast<double>(counts.saturated) / elements, entry.at("saturated_fraction"), 1e-12), name);
        QVERIFY2(counts.nearTies == entry.at("near_ties").get<std::size_t>(), name);
    }

    test::KernelGoldens m_goldens;
    std::shared_ptr<const Backend> m_backend;
};

QTEST_GUILESS_MAIN(TestGoldenQuantizers)
#include "tst_golden_quantizers.moc"
