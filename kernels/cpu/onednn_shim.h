// The only file that knows oneDNN (2.x and 3.x): single-threaded products on fixed tiles, called from our own loops.
// Without oneDNN the same tiles run in Eigen. Traps and measurements: the notes on speed (saturating int8, gomp, bits).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace planish::cpu {

inline constexpr std::size_t kGemmTileRows = 256; ///< part of every float result: never change it without the goldens
inline constexpr std::size_t kGemmTileOutputs = 512;

/// Scratch of one thread.
struct GemmScratch {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
};

/// Products of one depth K. Thread-safe; primitives are made once per tile width.
class TileGemm {
public:
    explicit TileGemm(std::size_t depth);
    ~TileGemm();

    /// c[256, outputs] = a[256, K] b[outputs, K]^T, all contiguous, outputs <= 512.
    void multiply(const float *a, const float *b, std::size_t outputs, float *c, GemmScratch &scratch) const;

private:
    struct Primitives;
    std::size_t m_depth;
    std::unique_ptr<Primitives> m_primitives;
};

/// c[rows, outputs] = a b^T of int8 codes through the library's s8 s8 s32 path; false when the library cannot.
/// Saturates silently on CPUs without VNNI: call only after the self test passed.
bool libraryIntegerProduct(const std::int8_t *a, const std::int8_t *b, std::size_t rows, std::size_t outputs, std::size_t depth,
                           std::int32_t *c);

/// "oneDNN 2.6.3" or "Eigen".
const char *gemmLibrary();

} // namespace planish::cpu
