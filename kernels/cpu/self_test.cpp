#include "kernels/cpu/self_test.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/onednn_shim.h"

namespace planish::cpu {

namespace {

constexpr std::size_t kExactFloatSum = std::size_t(1) << 24; // f32 holds every integer up to here
constexpr std::size_t kLargestDepth = 131071;                // 128 * 128 * K < 2^31

Matrix<std::int8_t> extremeCodes(std::size_t rows, std::size_t depth, std::size_t phase)
{
    Matrix<std::int8_t> codes(rows, depth);
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t k = 0; k < depth; ++k) {
            // Mostly equal signs: neighbouring products add up beyond 16 bits, where pair sums saturate.
            codes(r, k) =
                static_cast<std::int8_t>((r + phase) % 3 == 2 && k % 5 == 0 ? -127 : 127 - static_cast<int>((r * k) % 3));
        }
    }
    return codes;
}

std::int32_t exactSum(std::span<const std::int8_t> a, std::span<const std::int8_t> b)
{
    std::int32_t sum = 0;
    for (std::size_t k = 0; k < a.size(); ++k) {
        sum += static_cast<std::int32_t>(a[k]) * b[k];
    }
    return sum;
}

int largestMagnitude(MatrixView<const std::int8_t> m)
{
    int largest = 0;
    for (std::size_t r = 0; r < m.rows; ++r) {
        for (const std::int8_t v : m.row(r)) {
            largest = std::max(largest, std::abs(static_cast<int>(v)));
        }
    }
    return largest;
}

/// Codes as floats, `rows` of them from `first`, padded with zero rows to `padded`.
std::vector<float> widened(MatrixView<const std::int8_t> m, std::size_t first, std::size_t rows, std::size_t padded)
{
    std::vector<float> out(padded * m.cols, 0.0f);
    for (std::size_t r = 0; r < rows; ++r) {
        std::ranges::copy(m.row(first + r), out.begin() + static_cast<std::ptrdiff_t>(r * m.cols));
    }
    return out;
}

void throughFloat(MatrixView<const std::int8_t> a, MatrixView<const std::int8_t> b, Matrix<std::int32_t> &out)
{
    const TileGemm gemm(a.cols);
    GemmScratch scratch;
    std::vector<float> tile(kGemmTileRows * kGemmTileOutputs);
    for (std::size_t output = 0; output < b.rows; output += kGemmTileOutputs) {
        const std::size_t outputs = std::min(kGemmTileOutputs, b.rows - output);
        const auto weights = widened(b, output, outputs, outputs);
        for (std::size_t row = 0; row < a.rows; row += kGemmTileRows) {
            const std::size_t rows = std::min(kGemmTileRows, a.rows - row);
            gemm.multiply(widened(a, row, rows, kGemmTileRows).data(), weights.data(), outputs, tile.data(), scratch);
            for (std::size_t r = 0; r < rows; ++r) {
                std::transform(tile.begin() + static_cast<std::ptrdiff_t>(r * outputs),
                               tile.begin() + static_cast<std::ptrdiff_t>((r + 1) * outputs),
                               out.row(row + r).begin() + static_cast<std::ptrdiff_t>(output),
                               [](float v) { return static_cast<std::int32_t>(v); });
            }
        }
    }
}

} // namespace

Int8SelfTest selfTestInt8Gemm()
{
    constexpr std::size_t kRows = 16, kOutputs = 32, kDepth = 256;
    const auto a = extremeCodes(kRows, kDepth, 0), b = extremeCodes(kOutputs, kDepth, 1);
    Matrix<std::int32_t> product(kRows, kOutputs);
    Int8SelfTest result;
    if (!libraryIntegerProduct(a.data(), b.data(), kRows, kOutputs, kDepth, product.data())) {
        result.sentence = "no int8 product in this build, integer codes run through f32";
        return result;
    }
    result.passed = true;
    for (std::size_t r = 0; r < kRows; ++r) {
        for (std::size_t n = 0; n < kOutputs; ++n) {
            result.passed = result.passed && product(r, n) == exactSum(a.row(r), b.row(n));
        }
    }
    result.path = result.passed ? IntegerPath::Int8 : IntegerPath::Float32;
    result.sentence = result.passed ? "int8 products exact" : "int8 products saturate on this CPU, integer codes run through f32";
    return result;
}

bool rowsIgnoreTheirPlace()
{
    constexpr std::size_t kDepth = 320, kOutputs = 64;
    std::vector<float> a(kGemmTileRows * kDepth), b(kOutputs * kDepth), c(kGemmTileRows * kOutputs);
    for (std::size_t i = 0; i < a.size(); ++i) {
        a[i] = 0.001f * static_cast<float>((i * 2654435761u) % 2039) - 1.0f;
    }
    for (std::size_t i = 0; i < b.size(); ++i) {
        b[i] = 0.001f * static_cast<float>((i * 40503u) % 2029) - 1.0f;
    }
    std::copy_n(a.begin(), kDepth, a.end() - static_cast<std::ptrdiff_t>(kDepth));
    GemmScratch scratch;
    TileGemm(kDepth).multiply(a.data(), b.data(), kOutputs, c.data(), scratch);
    return std::memcmp(c.data(), c.data() + (kGemmTileRows - 1) * kOutputs, kOutputs * sizeof(float)) == 0;
}

KernelResult<Matrix<std::int32_t>> integerProduct(MatrixView<const std::int8_t> a, MatrixView<const std::int8_t> b,
                                                  IntegerPath path)
{
    if (a.cols != b.cols || a.stride != a.cols || b.stride != b.cols || a.cols > kLargestDepth) {
        return tl::make_unexpected(Status{StatusCode::ShapeMismatch,
                                          "an integer product expected contiguous codes of equal depth, "
                                          "at most 131071"});
    }
    Matrix<std::int32_t> out(a.rows, b.rows);
    if (out.empty()) {
        return out;
    }
    if (path == IntegerPath::Int8 && libraryIntegerProduct(a.data, b.data, a.rows, b.rows, a.cols, out.data())) {
        return out;
    }
    const auto bound = static_cast<std::size_t>(largestMagnitude(a) * largestMagnitude(b)) * a.cols;
    if (bound < kExactFloatSum) {
        throughFloat(a, b, out);
        return out;
    }
    for (std::size_t r = 0; r < a.rows; ++r) {
        for (std::size_t n = 0; n < b.rows; ++n) {
            out(r, n) = exactSum(a.row(r), b.row(n));
        }
    }
    return out;
}

std::string instructionSet()
{
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
    const bool dot = __builtin_cpu_supports("avx512vnni");
    return wide ? (dot ? "AVX-512 VNNI" : "AVX-512") : "AVX2";
}

} // namespace planish::cpu
