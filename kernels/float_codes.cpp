#include "kernels/float_codes.h"

#include <algorithm>
#include <limits>

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace planish {

const FloatFormat *elementFormat(NumberFormat format)
{
    switch (format) {
    case NumberFormat::Fp8E4M3:
    case NumberFormat::MxFp8E4M3:
        return &kE4M3;
    case NumberFormat::Fp8E5M2:
    case NumberFormat::MxFp8E5M2:
        return &kE5M2;
    case NumberFormat::Fp6E2M3:
    case NumberFormat::MxFp6E2M3:
        return &kE2M3;
    case NumberFormat::Fp6E3M2:
    case NumberFormat::MxFp6E3M2:
        return &kE3M2;
    case NumberFormat::Fp4E2M1:
    case NumberFormat::MxFp4:
    case NumberFormat::NvFp4:
        return &kE2M1;
    default:
        return nullptr;
    }
}

std::uint32_t encodeFloat(double v, const FloatFormat &f)
{
    const int width = f.exponentBits + f.mantissaBits;
    if (std::isnan(v)) {
        return width == 7 ? 0x7F : static_cast<std::uint32_t>(f.maxCode);
    }
    const std::uint32_t sign = std::signbit(v) ? 1u << width : 0u;
    const double a = std::fabs(v);
    if (a >= f.maxFinite) {
        return sign | static_cast<std::uint32_t>(f.maxCode);
    }
    const int smallest = 1 - f.bias;
    const int exponent = a == 0.0 ? smallest : std::max(std::ilogb(a), smallest);
    // The carry into the exponent is automatic and subnormals need no branch (formats.md 3.1).
    const auto units = static_cast<int>(std::nearbyint(std::ldexp(a, f.mantissaBits - exponent)));
    const int code = units + ((exponent - smallest) << f.mantissaBits);
    return sign | static_cast<std::uint32_t>(std::min(code, f.maxCode));
}

double decodeFloat(std::uint32_t code, const FloatFormat &f)
{
    const int width = f.exponentBits + f.mantissaBits;
    const auto magnitude = static_cast<int>(code & ((1u << width) - 1));
    const double sign = (code >> width) & 1u ? -1.0 : 1.0;
    if (magnitude > f.maxCode) {
        const bool infinite = f.maxCode + 1 == magnitude && (magnitude & ((1 << f.mantissaBits) - 1)) == 0;
        return infinite ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    }
    const int exponent = magnitude >> f.mantissaBits;
    const int mantissa = magnitude & ((1 << f.mantissaBits) - 1);
    if (exponent == 0) {
        return sign * std::ldexp(mantissa, 1 - f.bias - f.mantissaBits);
    }
    return sign * std::ldexp((1 << f.mantissaBits) + mantissa, exponent - f.bias - f.mantissaBits);
}

int signedCode(std::uint32_t code, const FloatFormat &f)
{
    const int width = f.exponentBits + f.mantissaBits;
    const auto magnitude = static_cast<int>(code & ((1u << width) - 1));
    return (code >> width) & 1u ? -magnitude : magnitude;
}

std::uint8_t encodeE8m0(double v, ScaleRounding rounding)
{
    if (std::isnan(v)) {
        return 255;
    }
    const double a = std::fabs(v);
    if (a == 0.0) {
        return 0;
    }
    if (std::isinf(a)) {
        return 254;
    }
    int exponent = 0;
    const double mantissa = 2.0 * std::frexp(a, &exponent); // [1, 2), value = mantissa * 2^(exponent - 1)
    --exponent;
    const bool up = rounding == ScaleRounding::Up ? mantissa > 1.0 : rounding == ScaleRounding::Nearest && mantissa >= 1.5;
    return static_cast<std::uint8_t>(std::clamp(exponent + (up ? 1 : 0) + 127, 0, 254));
}

double decodeE8m0(std::uint8_t code)
{
    return code == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, code - 127);
}

static double roundWithInfinity(double v, const FloatFormat &f)
{
    if (!std::isfinite(v)) {
        return v;
    }
    const double rounded = roundUnbounded(v, f);
    return std::fabs(rounded) > f.maxFinite ? std::copysign(std::numeric_limits<double>::infinity(), v) : rounded;
}

double roundToHalf(double v)
{
    return roundWithInfinity(v, kHalf);
}

double roundToBfloat16(double v)
{
    return roundWithInfinity(v, kBfloat16);
}

static std::uint16_t bitsOfRounded(double v, const FloatFormat &f)
{
    const double rounded = roundWithInfinity(v, f);
    if (std::isfinite(rounded)) {
        return static_cast<std::uint16_t>(encodeFloat(rounded, f));
    }
    const auto infinity = static_cast<std::uint16_t>(f.maxCode + 1);
    const auto quiet = static_cast<std::uint16_t>(std::isnan(v) ? 1u << (f.mantissaBits - 1) : 0u);
    return static_cast<std::uint16_t>((std::signbit(v) ? 0x8000u : 0u) | infinity | quiet);
}

std::uint16_t halfBits(double v)
{
    return bitsOfRounded(v, kHalf);
}

std::uint16_t bfloat16Bits(double v)
{
    return bitsOfRounded(v, kBfloat16);
}

float halfToFloat(std::uint16_t bits)
{
#ifdef __F16C__
    return _cvtsh_ss(bits);
#else
    return static_cast<float>(decodeFloat(bits, kHalf));
#endif
}

} // namespace planish
