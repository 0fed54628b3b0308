// Start-up self test of the integer products: oneDNN's int8 path saturates silently on CPUs without VNNI.
#pragma once

#include <string>

#include "kernels/matrix_view.h"
#include "kernels/status.h"

namespace planish::cpu {

enum class IntegerPath { Int8, Float32 }; ///< the library's s8 s8 s32, or codes through a float product

struct Int8SelfTest {
    bool passed = false; ///< extreme codes gave the exact sums
    IntegerPath path = IntegerPath::Float32;
    std::string sentence; ///< "int8 products exact", or what is done instead
};

/// Multiplies extreme codes (|q| <= 127, depth 256) and compares with exact sums; about a millisecond, no state.
Int8SelfTest selfTestInt8Gemm();

/// True when a row has the same bits at the first and the last place of a product tile.
bool rowsIgnoreTheirPlace();

/// Exact A B^T of int8 codes, [M,K] x [N,K] -> [M,N], by the path of the self test. Depth up to 131,071 (int32 sums).
KernelResult<Matrix<std::int32_t>> integerProduct(MatrixView<const std::int8_t> a, MatrixView<const std::int8_t> b,
                                                  IntegerPath path);

/// "AVX-512 VNNI", "AVX-512", "AVX2 VNNI", "AVX2".
std::string instructionSet();

} // namespace planish::cpu
