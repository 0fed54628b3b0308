// Decoding against the tables of formats.md 3 and 5, which come from the format specifications.
#include <QtTest>

#include <cmath>
#include <limits>

#include "core/io/number_decode.h"

using namespace planish;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

template <std::size_t N> std::vector<std::byte> bytesOf(const std::array<unsigned, N> &values)
{
    std::vector<std::byte> bytes;
    for (const unsigned value : values)
        bytes.push_back(static_cast<std::byte>(value));
    return bytes;
}

double widenOne(std::vector<std::byte> bytes, StoredType type, ByteOrder order)
{
    double value = 0.0;
    widen(bytes, type, order, std::span<double>(&value, 1));
    return value;
}

} // namespace

class TestNumberDecode : public QObject {
    Q_OBJECT
private slots:
    void bfloatBitsDecodeAsPublished()
    {
        QCOMPARE(bfloatToFloat(0x3F80), 1.0F);
        QCOMPARE(bfloatToFloat(0x4049), 3.140625F);
        QCOMPARE(bfloatToFloat(0xC000), -2.0F);
        QVERIFY(std::fabs(bfloatToFloat(0x0001) / 9.18355e-41F - 1.0F) < 1e-4F);
        QVERIFY(std::isinf(bfloatToFloat(0x7F80)));
        QVERIFY(std::isnan(bfloatToFloat(0x7FC0)));
    }

    void doublesRoundToBfloatTiesToEven()
    {
        QCOMPARE(doubleToBfloat(1.00390625), std::uint16_t{0x3F80});
        QCOMPARE(doubleToBfloat(1.01171875), std::uint16_t{0x3F82});
        QCOMPARE(doubleToBfloat(3.14159265), std::uint16_t{0x4049});
        QCOMPARE(doubleToBfloat(3.4e38), std::uint16_t{0x7F80});
        QCOMPARE(doubleToBfloat(-0.0), std::uint16_t{0x8000});
    }

    void roundingToBfloatHappensOnce()
    {
        // Through float this would round to 1.0 first (formats.md 1.1).
        QCOMPARE(bfloatToFloat(doubleToBfloat(1.0 + std::ldexp(1.0, -8) + std::ldexp(1.0, -33))), 1.0078125F);
    }

    void halfBitsDecodeAsPublished()
    {
        QCOMPARE(halfToFloat(0x3C00), 1.0F);
        QCOMPARE(halfToFloat(0x4248), 3.140625F);
        QCOMPARE(halfToFloat(0x0001), std::ldexp(1.0F, -24));
        QCOMPARE(halfToFloat(0x03FF), std::ldexp(1023.0F, -24));
        QCOMPARE(halfToFloat(0x0400), std::ldexp(1.0F, -14));
        QCOMPARE(halfToFloat(0x7BFF), 65504.0F);
        QVERIFY(std::isinf(halfToFloat(0x7C00)));
    }

    void halfReadsBfloatBits()
    {
        QCOMPARE(halfToFloat(0x4049), 2.142578125F);
        QCOMPARE(bfloatToFloat(0x4248), 50.0F);
    }

    void everyHalfSurvivesTheRoundTrip()
    {
        for (unsigned bits = 0; bits < 65536; ++bits) {
            const float value = halfToFloat(static_cast<std::uint16_t>(bits));
            if (!std::isnan(value))
                QCOMPARE(doubleToHalf(value), static_cast<std::uint16_t>(bits));
        }
    }

    void everyBfloatSurvivesTheRoundTrip()
    {
        for (unsigned bits = 0; bits < 65536; ++bits) {
            const float value = bfloatToFloat(static_cast<std::uint16_t>(bits));
            if (!std::isnan(value))
                QCOMPARE(doubleToBfloat(value), static_cast<std::uint16_t>(bits));
        }
    }

    void floatAndDoubleNarrowToTheSameHalf()
    {
        std::vector<float> floats;
        for (int i = -3000; i < 3000; ++i)
            floats.push_back(static_cast<float>(i) * 0.037F * std::ldexp(1.0F, i % 24 - 12));
        const std::vector<double> doubles(floats.begin(), floats.end());
        for (const StoredType type : {StoredType::F16, StoredType::Bf16, StoredType::F32}) {
            std::vector<std::byte> fromFloat(floats.size() * byteSize(type));
            std::vector<std::byte> fromDouble(fromFloat.size());
            narrow(std::span<const float>(floats), type, fromFloat);
            narrow(std::span<const double>(doubles), type, fromDouble);
            QVERIFY(fromFloat == fromDouble);
        }
    }

    void fp8TablesHoldThePublishedCodes_data()
    {
        QTest::addColumn<int>("type");
        QTest::addColumn<int>("code");
        QTest::addColumn<double>("value");
        const auto add = [](const char *name, StoredType type, int code, double value) {
            QTest::newRow(name) << static_cast<int>(type) << code << value;
        };
        add("e4m3 min", StoredType::Fp8E4M3, 0x01, .001953125);
        add("e4m3 max subnormal", StoredType::Fp8E4M3, 0x07, .013671875);
        add("e4m3 min normal", StoredType::Fp8E4M3, 0x08, .015625);
        add("e4m3 one", StoredType::Fp8E4M3, 0x38, 1.0);
        add("e4m3 1.5", StoredType::Fp8E4M3, 0x3C, 1.5);
        add("e4m3 max", StoredType::Fp8E4M3, 0x7E, 448.0);
        add("e4m3 -1", StoredType::Fp8E4M3, 0xB8, -1.0);
        add("e5m2 min", StoredType::Fp8E5M2, 0x01, 1.52587890625e-5);
        add("e5m2 min normal", StoredType::Fp8E5M2, 0x04, 6.103515625e-5);
        add("e5m2 one", StoredType::Fp8E5M2, 0x3C, 1.0);
        add("e5m2 max", StoredType::Fp8E5M2, 0x7B, 57344.0);
        add("e5m2 inf", StoredType::Fp8E5M2, 0x7C, kInf);
        add("e5m2 -inf", StoredType::Fp8E5M2, 0xFC, -kInf);
        add("e4m3fnuz max", StoredType::Fp8E4M3Fnuz, 0x7F, 240.0);
        add("e4m3fnuz half", StoredType::Fp8E4M3Fnuz, 0x38, .5);
        add("e4m3fnuz min normal", StoredType::Fp8E4M3Fnuz, 0x08, .0078125);
        add("e5m2fnuz max", StoredType::Fp8E5M2Fnuz, 0x7F, 57344.0);
        add("e5m2fnuz min", StoredType::Fp8E5M2Fnuz, 0x01, 7.62939453125e-6);
    }
    void fp8TablesHoldThePublishedCodes()
    {
        QFETCH(int, type);
        QFETCH(int, code);
        QFETCH(double, value);
        QCOMPARE(static_cast<double>(fp8Table(static_cast<StoredType>(type))[static_cast<std::size_t>(code)]), value);
    }

    void fp8NansAreWhereTheFormatsPutThem()
    {
        const auto nans = [](StoredType type) {
            int count = 0;
            for (const float value : fp8Table(type))
                count += std::isnan(value) ? 1 : 0;
            return count;
        };
        QCOMPARE(nans(StoredType::Fp8E4M3), 2);
        QCOMPARE(nans(StoredType::Fp8E5M2), 6);
        QCOMPARE(nans(StoredType::Fp8E4M3Fnuz), 1);
        QCOMPARE(nans(StoredType::Fp8E5M2Fnuz), 1);
        QVERIFY(std::isnan(fp8Table(StoredType::Fp8E4M3Fnuz)[0x80]));
    }

    void bigEndianIsSwappedBeforeDecoding()
    {
        QCOMPARE(widenOne(bytesOf(std::array{0x42U, 0x48U}), StoredType::F16, ByteOrder::Big), 3.140625);
        QCOMPARE(widenOne(bytesOf(std::array{0x48U, 0x42U}), StoredType::F16, ByteOrder::Little), 3.140625);
        QCOMPARE(widenOne(bytesOf(std::array{0xC0U, 0x00U}), StoredType::Bf16, ByteOrder::Big), -2.0);
        QCOMPARE(widenOne(bytesOf(std::array{0x3FU, 0xC0U, 0U, 0U}), StoredType::F32, ByteOrder::Big), 1.5);
        QCOMPARE(widenOne(bytesOf(std::array{0xBFU, 0xF0U, 0U, 0U, 0U, 0U, 0U, 0U}), StoredType::F64, ByteOrder::Big), -1.0);
        QCOMPARE(widenOne(bytesOf(std::array{0xFFU, 0xFEU}), StoredType::I16, ByteOrder::Big), -2.0);
    }

    void integersWidenWithTheirSign()
    {
        QCOMPARE(widenOne(bytesOf(std::array{0xFFU}), StoredType::I8, ByteOrder::Little), -1.0);
        QCOMPARE(widenOne(bytesOf(std::array{0xFFU}), StoredType::U8, ByteOrder::Little), 255.0);
        QCOMPARE(widenOne(bytesOf(std::array{0xFEU, 0xFFU, 0xFFU, 0xFFU}), StoredType::I32, ByteOrder::Little), -2.0);
        QCOMPARE(widenOne(bytesOf(std::array{0U, 0U, 0U, 0x80U}), StoredType::U32, ByteOrder::Little), 2147483648.0);
    }

    void narrowedIntegersSaturate()
    {
        const std::array<double, 4> values{300.0, -300.0, 1.5, std::numeric_limits<double>::quiet_NaN()};
        std::vector<std::byte> bytes(values.size());
        narrow(std::span<const double>(values), StoredType::I8, bytes);
        QVERIFY(bytes == bytesOf(std::array{127U, 128U, 2U, 0U}));
    }

    void longRunsDecodeLikeSingleNumbers()
    {
        std::vector<std::byte> bytes;
        for (unsigned i = 0; i < 10007; ++i) {
            bytes.push_back(static_cast<std::byte>(i * 31 & 0xFF));
            bytes.push_back(static_cast<std::byte>(i * 7 & 0x7B));
        }
        for (const StoredType type : {StoredType::F16, StoredType::Bf16}) {
            for (const ByteOrder order : {ByteOrder::Little, ByteOrder::Big}) {
                std::vector<double> wide(bytes.size() / 2);
                std::vector<float> single(wide.size());
                widen(bytes, type, order, std::span<double>(wide));
                widen(bytes, type, order, std::span<float>(single));
                for (std::size_t i = 0; i < wide.size(); ++i) {
                    const double one = widenOne({bytes[2 * i], bytes[2 * i + 1]}, type, order);
                    QVERIFY(wide[i] == one || (std::isnan(wide[i]) && std::isnan(one)));
                    QVERIFY(single[i] == static_cast<float>(one) || std::isnan(one));
                }
            }
        }
    }

    void upcastIsSeenOnlyWhenEveryLowHalfIsZero()
    {
        const std::array<float, 3> upcast{bfloatToFloat(0x4049), 0.0F, bfloatToFloat(0xC123)};
        const std::array<float, 2> real{1.0F, 3.14159265F};
        const std::array<float, 2> zeros{0.0F, -0.0F};
        QVERIFY(looksUpcast(upcast));
        QVERIFY(!looksUpcast(real));
        QVERIFY(!looksUpcast(zeros));
    }

    void everyTypeHasANameAndAWidth()
    {
        for (int i = 0; i <= static_cast<int>(StoredType::Other); ++i) {
            const auto type = static_cast<StoredType>(i);
            QVERIFY(!nameOf(type).empty());
            QCOMPARE(byteSize(type) > 0, isNumeric(type));
        }
    }
};

QTEST_GUILESS_MAIN(TestNumberDecode)
#include "tst_number_decode.moc"
