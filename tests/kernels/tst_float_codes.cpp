// Scalar codes against NVIDIA's host conversions: every code, every midpoint and its neighbours.
#include <QtTest>

#include "kernels/float_codes.h"
#include "tests/support/kernel_goldens.h"

using namespace planish;

namespace {
const std::pair<const char *, const FloatFormat *> kFormats[] = {
    {"fp8_e4m3", &kE4M3}, {"fp8_e5m2", &kE5M2}, {"fp6_e2m3", &kE2M3}, {"fp6_e3m2", &kE3M2}, {"fp4_e2m1", &kE2M1}};

std::string blob(const char *format, const char *part)
{
    return std::string(format) + "." + part;
}
} // namespace

class TestFloatCodes : public QObject {
    Q_OBJECT
private slots:
    void everyCodeDecodesAsPublished()
    {
        for (const auto &[name, format] : kFormats) {
            const MatrixD golden = m_goldens.matrix(blob(name, "decode_f64"));
            QCOMPARE(golden.size(), std::size_t(2) << (format->exponentBits + format->mantissaBits));
            for (std::size_t code = 0; code < golden.size(); ++code) {
                const double value = decodeFloat(static_cast<std::uint32_t>(code), *format), expected = golden.data()[code];
                QVERIFY2(std::isnan(expected) ? std::isnan(value)
                                              : value == expected && std::signbit(value) == std::signbit(expected),
                         qPrintable(QString("%1 code %2").arg(name).arg(code)));
            }
        }
    }
    void everyInputEncodesAsTheGpu()
    {
        for (const auto &[name, format] : kFormats) {
            for (const auto &[input, codes] :
                 {std::pair{"input_f32", "encode_saturate"}, {"input_f64", "encode_saturate_from_f64"}}) {
                const MatrixD x = m_goldens.matrix(blob(name, input)), expected = m_goldens.matrix(blob(name, codes));
                QVERIFY(x.size() > 40);
                for (std::size_t i = 0; i < x.size(); ++i) {
                    const auto code = encodeFloat(x.data()[i], *format);
                    QVERIFY2(code == static_cast<std::uint32_t>(expected.data()[i]),
                             qPrintable(QString("%1 of %2: %3").arg(name).arg(x.data()[i], 0, 'g', 17).arg(code)));
                }
            }
        }
    }
    void roundedValuesEqualDecodedCodes()
    {
        for (const auto &[name, format] : kFormats) {
            const MatrixD x = m_goldens.matrix(blob(name, "input_f64"));
            for (const double v : x.values()) {
                if (std::isfinite(v)) {
                    const double limited = std::clamp(roundUnbounded(v, *format), -format->maxFinite, format->maxFinite);
                    QCOMPARE(limited, decodeFloat(encodeFloat(v, *format), *format));
                }
            }
        }
    }
    void blockScalesRoundInThreeWays()
    {
        const MatrixD x = m_goldens.matrix("e8m0.input_f32");
        for (const auto &[part, rounding] : {std::pair{"encode_round_up", ScaleRounding::Up},
                                             {"encode_round_down", ScaleRounding::Down},
                                             {"encode_nearest_torch", ScaleRounding::Nearest}}) {
            const MatrixD expected = m_goldens.matrix(blob("e8m0", part));
            for (std::size_t i = 0; i < x.size(); ++i) {
                // PyTorch's nearest cast overflows to NaN instead of saturating and works on the bits of f32 subnormals.
                const double a = std::fabs(x.data()[i]);
                if (rounding == ScaleRounding::Nearest && !(a >= std::ldexp(1.0, -126) && a < std::ldexp(1.5, 127))) {
                    continue;
                }
                QVERIFY2(encodeE8m0(x.data()[i], rounding) == static_cast<std::uint8_t>(expected.data()[i]),
                         qPrintable(QString("%1 of %2").arg(part).arg(x.data()[i], 0, 'g', 9)));
            }
        }
        const MatrixD decoded = m_goldens.matrix("e8m0.decode_f64");
        for (std::size_t code = 0; code < 255; ++code) {
            QCOMPARE(decodeE8m0(static_cast<std::uint8_t>(code)), decoded.data()[code]);
        }
    }
    void sixteenBitFloatsRoundOnce()
    {
        // formats.md 1.1 and 5: bit patterns and a double rounding that must not happen.
        QCOMPARE(roundToBfloat16(1.0 + std::ldexp(1.0, -8) + std::ldexp(1.0, -33)), 1.0078125);
        QCOMPARE(bfloat16Bits(1.00390625), std::uint16_t(0x3F80));
        QCOMPARE(bfloat16Bits(1.01171875), std::uint16_t(0x3F82));
        QCOMPARE(bfloat16Bits(3.14159265), std::uint16_t(0x4049));
        QCOMPARE(bfloat16Bits(3.4e38), std::uint16_t(0x7F80));
        QCOMPARE(bfloat16ToFloat(0x4049), 3.140625f);
        QCOMPARE(halfToFloat(0x4248), 3.140625f);
        QCOMPARE(halfToFloat(0x0001), 5.9604644775390625e-8f);
        QCOMPARE(halfToFloat(0x7BFF), 65504.0f);
        QVERIFY(std::isinf(halfToFloat(0x7C00)));
        QCOMPARE(roundToHalf(65519.9), 65504.0);
        QVERIFY(std::isinf(roundToHalf(65520.0)));
    }
    void everyHalfSurvivesTheRoundTrip()
    {
        for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
            if ((bits & 0x7C00) != 0x7C00) {
                QCOMPARE(halfBits(halfToFloat(static_cast<std::uint16_t>(bits))), static_cast<std::uint16_t>(bits));
            }
            if ((bits & 0x7F80) != 0x7F80) {
                QCOMPARE(bfloat16Bits(bfloat16ToFloat(static_cast<std::uint16_t>(bits))), static_cast<std::uint16_t>(bits));
            }
        }
    }

private:
    test::KernelGoldens m_goldens;
};

QTEST_GUILESS_MAIN(TestFloatCodes)
#include "tst_float_codes.moc"
