#include "core/io/number_decode.h"


#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace planish {

namespace {

/// fp8 with E exponent and M mantissa bits. `finite` types have no Inf; fnuz types have one NaN, 0x80.
float decodeFp8(unsigned code, int exponentBits, int mantissaBits, int bias, bool fnuz)
{
    const int exponent = static_cast<int>(code >> mantissaBits) & ((1 << exponentBits) - 1);
    const int mantissa = static_cast<int>(code) & ((1 << mantissaBits) - 1);
    const float sign = (code & 0x80) != 0 ? -1.0F : 1.0F;
    const int top = (1 << exponentBits) - 1;
    if (fnuz && code == 0x80)
        return std::numeric_limits<float>::quiet_NaN();
    if (!fnuz && exponent == top) {
        const bool hasInf = exponentBits == 5;
        if (hasInf && mantissa == 0)
            return sign * std::numeric_limits<float>::infinity();
        if (hasInf || mantissa == (1 << mantissaBits) - 1)
            return std::numeric_limits<float>::quiet_NaN();
    }
    if (exponent == 0)
        return sign * std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissaBits);
    return sign * std::ldexp(1.0F + std::ldexp(static_cast<float>(mantissa), -mantissaBits), exponent - bias);
}

std::array<float, 256> makeFp8Table(int exponentBits, int mantissaBits, int bias, bool fnuz)
{
    std::array<float, 256> table{};
    for (unsigned code = 0; code < table.size(); ++code)
        table[code] = decodeFp8(code, exponentBits, mantissaBits, bias, fnuz);
    return table;
}

/// Rounds |value| to a binary float of the given mantissa bits, exponent range and bias; exact in double.
std::uint16_t roundToBits(double value, int exponentBits, int mantissaBits, int bias)
{
    const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
    const unsigned infinity = ((1U << exponentBits) - 1) << mantissaBits;
    if (std::isnan(value))
        return static_cast<std::uint16_t>(sign | infinity | (1U << (mantissaBits - 1)));
    const double magnitude = std::fabs(value);
    if (std::isinf(magnitude))
        return static_cast<std::uint16_t>(sign | infinity);
    if (magnitude == 0.0)
        return sign;
    const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
    const double units = std::nearbyint(std::ldexp(magnitude, mantissaBits - exponent));
    // The carry out of the mantissa moves into the exponent by itself; subnormals need no branch (formats.md 3.1).
    const double code = units + std::ldexp(static_cast<double>(exponent - (1 - bias)), mantissaBits);
    return static_cast<std::uint16_t>(sign | static_cast<unsigned>(std::min(code, static_cast<double>(infinity))));
}

template <class Stored, class Out> void widenAs(std::span<const std::byte> bytes, std::span<Out> out)
{
    const std::byte *from = bytes.data();
    for (std::size_t i = 0; i < out.size(); ++i) {
        Stored value;
        std::memcpy(&value, from + i * sizeof(Stored), sizeof(Stored));
        out[i] = static_cast<Out>(value);
    }
}

void widenHalf(std::span<const std::byte> bytes, std::span<float> out)
{
    const std::byte *from = bytes.data();
    std::size_t i = 0;
    for (; i + 8 <= out.size(); i += 8)
        _mm256_storeu_ps(out.data() + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + 2 * i))));
    for (; i < out.size(); ++i) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, from + 2 * i, 2);
        out[i] = halfToFloat(bits);
    }
}

void widenHalf(std::span<const std::byte> bytes, std::span<double> out)
{
    const std::byte *from = bytes.data();
    std::size_t i = 0;
    for (; i + 8 <= out.size(); i += 8) {
        const __m256 wide = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + 2 * i)));
        _mm256_storeu_pd(out.data() + i, _mm256_cvtps_pd(_mm256_castps256_ps128(wide)));
        _mm256_storeu_pd(out.data() + i + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(wide, 1)));
    }
    for (; i < out.size(); ++i) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, from + 2 * i, 2);
        out[i] = static_cast<double>(halfToFloat(bits));
    }
}

template <class Out> void widenBfloat(std::span<const std::byte> bytes, std::span<Out> out)
{
    const std::byte *from = bytes.data();
    for (std::size_t i = 0; i < out.size(); ++i) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, from + 2 * i, 2);
        out[i] = static_cast<Out>(bfloatToFloat(bits));
    }
}

template <class Out> void widenFp8(std::span<const std::byte> bytes, StoredType type, std::span<Out> out)
{
    const std::array<float, 256> &table = fp8Table(type);
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<Out>(table[static_cast<unsigned char>(bytes[i])]);
}

template <class Out> void widenNative(std::span<const std::byte> bytes, StoredType type, std::span<Out> out)
{
    switch (type) {
    case StoredType::F16:
        return widenHalf(bytes, out);
    case StoredType::Bf16:
        return widenBfloat(bytes, out);
    case StoredType::F32:
        return widenAs<float>(bytes, out);
    case StoredType::F64:
        return widenAs<double>(bytes, out);
    case StoredType::I8:
        return widenAs<std::int8_t>(bytes, out);
    case StoredType::U8:
    case StoredType::Bool:
        return widenAs<std::uint8_t>(bytes, out);
    case StoredType::I16:
        return widenAs<std::int16_t>(bytes, out);
    case StoredType::U16:
        return widenAs<std::uint16_t>(bytes, out);
    case StoredType::I32:
        return widenAs<std::int32_t>(bytes, out);
    case StoredType::U32:
        return widenAs<std::uint32_t>(bytes, out);
    case StoredType::I64:
        return widenAs<std::int64_t>(bytes, out);
    case StoredType::U64:
        return widenAs<std::uint64_t>(bytes, out);
    case StoredType::Fp8E4M3:
    case StoredType::Fp8E5M2:
    case StoredType::Fp8E4M3Fnuz:
    case StoredType::Fp8E5M2Fnuz:
        return widenFp8(bytes, type, out);
    case StoredType::Text:
    case StoredType::Other:
        std::fill(out.begin(), out.end(), std::numeric_limits<Out>::quiet_NaN());
    }
}

template <class Out> void widenAny(std::span<const std::byte> bytes, StoredType type, ByteOrder order, std::span<Out> out)
{
    const std::size_t size = byteSize(type);
    if (order == ByteOrder::Little || size < 2)
        return widenNative(bytes, type, out);
    constexpr std::size_t kPiece = 4096;
    std::vector<std::byte> swapped(kPiece * size);
    for (std::size_t begin = 0; begin < out.size(); begin += kPiece) {
        const std::size_t count = std::min(kPiece, out.size() - begin);
        const std::span<std::byte> piece(swapped.data(), count * size);
        std::memcpy(piece.data(), bytes.data() + begin * size, piece.size());
        swapBytes(piece, size);
        widenNative(std::span<const std::byte>(piece), type, out.subspan(begin, count));
    }
}

template <class Stored> void narrowInteger(std::span<const double> values, std::byte *to)
{
    using Limits = std::numeric_limits<Stored>;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double rounded = std::nearbyint(values[i]);
        Stored stored = 0;
        if (rounded >= static_cast<double>(Limits::max()))
            stored = Limits::max();
        else if (rounded <= static_cast<double>(Limits::min()))
            stored = Limits::min();
        else if (!std::isnan(rounded))
            stored = static_cast<Stored>(rounded);
        std::memcpy(to + i * sizeof(Stored), &stored, sizeof(Stored));
    }
}

template <class Stored, class Convert> void narrowWith(std::span<const double> values, std::byte *to, const Convert &convert)
{
    for (std::size_t i = 0; i < values.size(); ++i) {
        const Stored stored = convert(values[i]);
        std::memcpy(to + i * sizeof(Stored), &stored, sizeof(Stored));
    }
}

} // namespace


float bfloatToFloat(std::uint16_t bits)
{
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

const std::array<float, 256> &fp8Table(StoredType type)
{
    static const std::array<float, 256> e4m3 = makeFp8Table(4, 3, 7, false);
    static const std::array<float, 256> e5m2 = makeFp8Table(5, 2, 15, false);
    static const std::array<float, 256> e4m3Fnuz = makeFp8Table(4, 3, 8, true);
    static const std::array<float, 256> e5m2Fnuz = makeFp8Table(5, 2, 16, true);
    switch (type) {
    case StoredType::Fp8E5M2:
        return e5m2;
    case StoredType::Fp8E4M3Fnuz:
        return e4m3Fnuz;
    case StoredType::Fp8E5M2Fnuz:
        return e5m2Fnuz;
    default:
        return e4m3;
    }
}

std::uint16_t doubleToHalf(double value)
{
    return roundToBits(value, 5, 10, 15);
}

std::uint16_t doubleToBfloat(double value)
{
    return roundToBits(value, 8, 7, 127);
}

bool isNumeric(StoredType type)
{
    return type != StoredType::Text && type != StoredType::Other;
}

void widen(std::span<const std::byte> bytes, StoredType type, ByteOrder order, std::span<double> out)
{
    widenAny(bytes, type, order, out);
}

void widen(std::span<const std::byte> bytes, StoredType type, ByteOrder order, std::span<float> out)
{
    widenAny(bytes, type, order, out);
}

void narrow(std::span<const double> values, StoredType type, std::span<std::byte> out)
{
    std::byte *to = out.data();
    switch (type) {
    case StoredType::F16:
        return narrowWith<std::uint16_t>(values, to, doubleToHalf);
    case StoredType::Bf16:
        return narrowWith<std::uint16_t>(values, to, doubleToBfloat);
    case StoredType::F32:
        return narrowWith<float>(values, to, [](double v) { return static_cast<float>(v); });
    case StoredType::F64:
        return narrowWith<double>(values, to, [](double v) { return v; });
    case StoredType::I8:
        return narrowInteger<std::int8_t>(values, to);
    case StoredType::U8:
    case StoredType::Bool:
        return narrowInteger<std::uint8_t>(values, to);
    case StoredType::I16:
        return narrowInteger<std::int16_t>(values, to);
    case StoredType::U16:
        return narrowInteger<std::uint16_t>(values, to);
    case StoredType::I32:
        return narrowInteger<std::int32_t>(values, to);
    case StoredType::U32:
        return narrowInteger<std::uint32_t>(values, to);
    case StoredType::I64:
        return narrowInteger<std::int64_t>(values, to);
    case StoredType::U64:
        return narrowInteger<std::uint64_t>(values, to);
    default:
        std::fill(out.begin(), out.end(), std::byte{0});
    }
}

void narrow(std::span<const float> values, StoredType type, std::span<std::byte> out)
{
    if (type == StoredType::F32) {
        std::memcpy(out.data(), values.data(), values.size_bytes());
        return;
    }
    if (type == StoredType::F16) {
        std::size_t i = 0;
        for (; i + 8 <= values.size(); i += 8)
            _mm_storeu_si128(reinterpret_cast<__m128i *>(out.data() + 2 * i),
                             _mm256_cvtps_ph(_mm256_loadu_ps(values.data() + i), _MM_FROUND_TO_NEAREST_INT));
        for (; i < values.size(); ++i) {
            const std::uint16_t bits = _cvtss_sh(values[i], _MM_FROUND_TO_NEAREST_INT);
            std::memcpy(out.data() + 2 * i, &bits, 2);
        }
        return;
    }
    constexpr std::size_t kPiece = 4096;
    std::vector<double> wide(std::min(kPiece, values.size()));
    const std::size_t size = byteSize(type);
    for (std::size_t begin = 0; begin < values.size(); begin += kPiece) {
        const std::size_t count = std::min(kPiece, values.size() - begin);
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(begin), count, wide.begin());
        narrow(std::span<const double>(wide.data(), count), type, out.subspan(begin * size, count * size));
    }
}

void swapBytes(std::span<std::byte> bytes, std::size_t elementBytes)
{
    if (elementBytes < 2)
        return;
    for (std::size_t at = 0; at + elementBytes <= bytes.size(); at += elementBytes)
        std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     bytes.begin() + static_cast<std::ptrdiff_t>(at + elementBytes));
}

bool looksUpcast(std::span<const float> values)
{
    bool anyNonZero = false;
    for (const float value : values) {
        const auto bits = std::bit_cast<std::uint32_t>(value);
        if ((bits & 0xFFFF) != 0)
            return false;
        anyNonZero = anyNonZero || (bits & 0x7FFFFFFF) != 0;
    }
    return anyNonZero;
}

} // namespace planish
