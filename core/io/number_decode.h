// Stored bytes to numbers: every StoredType in both byte orders, and back for the types the writers need. HDF5 never converts.
// Decode rules and test values: formats.md 3 and 5.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/io/file_structure.h"
#include "kernels/float_codes.h"

namespace planish {

/// One number from its bits; halfToFloat is the kernels'.
float bfloatToFloat(std::uint16_t bits);
/// 256 values of an fp8 type (NaN and Inf as such).
const std::array<float, 256> &fp8Table(StoredType type);

/// Round to nearest, ties to even; overflow gives Inf as the cast does. From double directly: rounding through float would round twice.
std::uint16_t doubleToHalf(double value);
std::uint16_t doubleToBfloat(double value);

/// True for every type `widen` can read.
bool isNumeric(StoredType type);

/// Widens stored numbers to double. `bytes.size()` must be out.size() * byteSize(type). Not for Text and Other.
void widen(std::span<const std::byte> bytes, StoredType type, ByteOrder order, std::span<double> out);
/// The same to float, exact for every type of at most 32 bits that float holds; f64 and wide integers are rounded.
void widen(std::span<const std::byte> bytes, StoredType type, ByteOrder order, std::span<float> out);

/// Narrows doubles to a stored type (f16, bf16, f32, f64 and the integers, which saturate), little-endian.
void narrow(std::span<const double> values, StoredType type, std::span<std::byte> out);
/// The same from float; f16 by the hardware conversion (same result).
void narrow(std::span<const float> values, StoredType type, std::span<std::byte> out);

/// Swaps the bytes of each number in place.
void swapBytes(std::span<std::byte> bytes, std::size_t elementBytes);

/// True when every f32 has its low 16 bits zero and at least one number is not zero: bf16 written as f32.
bool looksUpcast(std::span<const float> values);

} // namespace planish
