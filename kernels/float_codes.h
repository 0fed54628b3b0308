// Codes of the small float formats (FP8, FP6, FP4), of E8M0 scales and of f16 / bf16: exact decode, one rounding from double.
// Nearest, ties to even code, saturating; formats.md 1 and 3. No scale, no share: that is share_grid.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/number_grid.h"

namespace planish {

/// sign, exponentBits, mantissaBits with bias; subnormals at exponent 0. maxCode = code of maxFinite without sign.
struct FloatFormat {
    int exponentBits = 0;
    int mantissaBits = 0;
    int bias = 0;
    double maxFinite = 0.0;
    int maxCode = 0;
    int largestExponent = 0; ///< emax of formats.md 4.1: floor(log2 maxFinite)
};

inline constexpr FloatFormat kE4M3{4, 3, 7, 448.0, 0x7E, 8};
inline constexpr FloatFormat kE5M2{5, 2, 15, 57344.0, 0x7B, 15};
inline constexpr FloatFormat kE2M3{2, 3, 1, 7.5, 0x1F, 2};
inline constexpr FloatFormat kE3M2{3, 2, 3, 28.0, 0x1F, 4};
inline constexpr FloatFormat kE2M1{2, 1, 1, 6.0, 0x07, 2};
inline constexpr FloatFormat kHalf{5, 10, 15, 65504.0, 0x7BFF, 15};
inline constexpr FloatFormat kBfloat16{8, 7, 127, 3.3895313892515355e38, 0x7F7F, 127};

/// Element format of a float or block-float number format; nullptr for integers, mxint8 and none.
const FloatFormat *elementFormat(NumberFormat format);

/// Distance of two neighbours at |v| on the grid that goes on above maxFinite: 2^(max(e, 1 - bias) - M), a power of two.
inline double spacingAt(double v, const FloatFormat &f)
{
    constexpr std::uint64_t kExponentMask = 0x7FF0000000000000ull;
    const auto smallest = static_cast<std::uint64_t>(1023 + 1 - f.bias) << 52;
    const std::uint64_t field = std::bit_cast<std::uint64_t>(v) & kExponentMask;
    const std::uint64_t larger = field > smallest ? field : smallest;
    return std::bit_cast<double>(larger - (static_cast<std::uint64_t>(f.mantissaBits) << 52));
}

/// Nearest value of the grid without its upper limit, ties to even; keeps the sign of zero.
inline double roundUnbounded(double v, const FloatFormat &f)
{
    const double spacing = spacingAt(v, f);
    return std::nearbyint(v / spacing) * spacing;
}

/// Code with sign bit, saturating at maxFinite. NaN: the NaN code 0x7F of FP8, else the largest code (as the GPU does).
std::uint32_t encodeFloat(double v, const FloatFormat &f);

/// Value of a code; NaN and infinities where the format has them.
double decodeFloat(std::uint32_t code, const FloatFormat &f);

/// (-1)^sign * (code without sign bit), the integer that reports sum up.
int signedCode(std::uint32_t code, const FloatFormat &f);

enum class ScaleRounding { Up, Down, Nearest };

/// E8M0 byte of a scale: sign ignored, below 2^-127 gives 0, above 2^127 gives 254, NaN 255. Nearest takes the tie up.
std::uint8_t encodeE8m0(double v, ScaleRounding rounding);
double decodeE8m0(std::uint8_t code);

/// Nearest f16 / bf16 as double; overflow gives infinity as in IEEE arithmetic.
double roundToHalf(double v);
double roundToBfloat16(double v);

/// Bits of 16-bit floats, one rounding from double; NaN stays a quiet NaN.
std::uint16_t halfBits(double v);
std::uint16_t bfloat16Bits(double v);
float halfToFloat(std::uint16_t bits);
inline float bfloat16ToFloat(std::uint16_t bits)
{
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

} // namespace planish
