// Float Walsh-Hadamard transform of rows: four stages at a time in registers (radix 16), one row's work in the first-level cache,
// the next row prefetched. The order of stages depends on the vector length, so instruction sets may differ in the last bits.
#include "kernels/cpu/hadamard.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/hadamard_vector.cpp"
#include <hwy/foreach_target.h>
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace planish::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using Vec = hn::Vec<Floats>;

/// Stages of strides S, 2S, ... inside `kCount` vectors held in registers: unrolled by template, loops would go through memory.
template <std::size_t kStride, std::size_t kCount> HWY_INLINE void butterflyStages(Vec (&v)[kCount])
{
    if constexpr (kStride < kCount) {
#pragma GCC unroll 16
        for (std::size_t pair = 0; pair < kCount / 2; ++pair) {
            const std::size_t low = pair / kStride * 2 * kStride + pair % kStride;
            const Vec a = v[low], b = v[low + kStride];
            v[low] = hn::Add(a, b);
            v[low + kStride] = hn::Sub(a, b);
        }
        butterflyStages<2 * kStride>(v);
    }
}

template <std::size_t kCount> HWY_INLINE void butterflies(Vec (&v)[kCount])
{
    butterflyStages<1>(v);
}

/// The partner `kStride` lanes away.
template <std::size_t kStride> HWY_INLINE Vec partnerOf(Floats df, Vec v)
{
    if constexpr (kStride == 1) {
        return hn::Shuffle2301(v);
    } else if constexpr (kStride == 2) {
        return hn::Shuffle1032(v);
    } else if constexpr (kStride == 4) {
        return hn::SwapAdjacentBlocks(v);
    } else {
        return hn::ConcatLowerUpper(df, v, v);
    }
}

/// Stages inside a vector: lanes with the stride bit hold b and become a - b, the others a + b; the sign rides on one fused step
/// (a product with +-1 is exact).
class LaneStages {
public:
    HWY_INLINE explicit LaneStages(Floats df)
        : m_sign1(signs<1>(df)), m_sign2(signs<2>(df)), m_sign4(signs<4>(df)), m_sign8(signs<8>(df))
    {
    }
    HWY_INLINE Vec operator()(Floats df, Vec v) const
    {
        v = hn::MulAdd(v, m_sign1, partnerOf<1>(df, v));
        v = hn::MulAdd(v, m_sign2, partnerOf<2>(df, v));
        if constexpr (hn::MaxLanes(Floats()) >= 8) {
            v = hn::MulAdd(v, m_sign4, partnerOf<4>(df, v));
        }
        if constexpr (hn::MaxLanes(Floats()) >= 16) {
            v = hn::MulAdd(v, m_sign8, partnerOf<8>(df, v));
        }
        return v;
    }

private:
    template <std::size_t kStride> static HWY_INLINE Vec signs(Floats df)
    {
        const hn::RebindToUnsigned<Floats> du;
        const auto bit = hn::ShiftLeft<31 - hwy::FloorLog2(kStride)>(hn::Iota(du, 0u));
        return hn::Xor(hn::Set(df, 1.0f), hn::BitCast(df, hn::And(bit, hn::Set(du, 0x80000000u))));
    }
    Vec m_sign1, m_sign2, m_sign4, m_sign8;
};

/// kCount vectors that lie `stride` floats apart, for every vector of the `stride` floats; from `in` to `out`.
template <std::size_t kCount> HWY_INLINE void strided(const float *in, float *out, std::size_t stride)
{
    const Floats df;
    for (std::size_t j = 0; j < stride; j += hn::Lanes(df)) {
        Vec v[kCount];
        const float *from = in + j;
        float *to = out + j;
#pragma GCC unroll 16
        for (std::size_t i = 0; i < kCount; ++i) {
            v[i] = hn::LoadU(df, from);
            from += stride;
            asm("" : "+r"(from)); // one pointer that moves: sixteen of them would not fit in registers
        }
        butterflies(v);
#pragma GCC unroll 16
        for (std::size_t i = 0; i < kCount; ++i) {
            hn::StoreU(v[i], df, to);
            to += stride;
            asm("" : "+r"(to));
        }
    }
}

/// The stages below kCount vectors: inside vectors, then across them, then the scale.
template <std::size_t kCount, class Write>
HWY_INLINE void contiguous(const float *in, float *out, std::size_t length, float scale, const float *prefetch, Write write)
{
    const Floats df;
    const std::size_t step = kCount * hn::Lanes(df);
    const auto factor = hn::Set(df, scale);
    const LaneStages insideVector(df);
    for (std::size_t begin = 0; begin < length; begin += step) {
        for (std::size_t line = 0; prefetch && line < step; line += 16) {
            __builtin_prefetch(prefetch + begin + line, 0, 2); // second level: the first holds this row and its work
        }
        Vec v[kCount];
#pragma GCC unroll 16
        for (std::size_t i = 0; i < kCount; ++i) {
            v[i] = insideVector(df, hn::LoadU(df, in + begin + i * hn::Lanes(df)));
        }
        butterflies(v);
#pragma GCC unroll 16
        for (std::size_t i = 0; i < kCount; ++i) {
            write(hn::Mul(v[i], factor), out + begin + i * hn::Lanes(df));
        }
    }
}

/// Stages of strides from `block` upwards, `work` in and out; the first pass reads `in`.
template <std::size_t kRadix>
HWY_INLINE const float *upperStages(const float *in, float *work, std::size_t length, std::size_t block)
{
    std::size_t stride = block;
    while (stride < length) {
        const std::size_t left = length / stride;
        const std::size_t radix = left >= kRadix ? kRadix : left;
        for (std::size_t begin = 0; begin < length; begin += stride * radix) {
            switch (radix) {
            case 16:
                strided<kRadix>(in + begin, work + begin, stride);
                break;
            case 8:
                strided<8>(in + begin, work + begin, stride);
                break;
            case 4:
                strided<4>(in + begin, work + begin, stride);
                break;
            default:
                strided<2>(in + begin, work + begin, stride);
                break;
            }
        }
        in = work;
        stride *= radix;
    }
    return in;
}

void plainRow(const float *in, float *out, std::size_t length, float scale)
{
    std::copy(in, in + length, out);
    for (std::size_t h = 1; h < length; h *= 2) {
        for (std::size_t i = 0; i < length; i += 2 * h) {
            for (std::size_t j = i; j < i + h; ++j) {
                const float a = out[j], b = out[j + h];
                out[j] = a + b;
                out[j + h] = a - b;
            }
        }
    }
    for (std::size_t i = 0; i < length; ++i) {
        out[i] *= scale;
    }
}

template <class Write>
HWY_INLINE void transformAll(const float *in, float *out, std::size_t rows, std::size_t length, float *work, Write write)
{
    // Sixteen vectors and the signs fit in 32 registers; with 16 registers eight do.
    constexpr std::size_t kRadix = hn::MaxLanes(Floats()) >= 16 ? 16 : 8;
    const std::size_t block = kRadix * hn::Lanes(Floats());
    const float scale = 1.0f / std::sqrt(static_cast<float>(length));
    for (std::size_t r = 0; r < rows; ++r) {
        const float *source = in + r * length, *next = r + 1 < rows ? source + length : nullptr;
        float *target = out + r * length;
        if (length < block) {
            plainRow(source, target, length, scale);
        } else {
            contiguous<kRadix>(upperStages<kRadix>(source, work, length, block), target, length, scale, next, write);
        }
    }
}

/// `streams`: results go past the caches (aligned rows of a matrix that would not fit anyway).
void transformRows(const float *in, float *out, std::size_t rows, std::size_t length, float *work, int streams)
{
    if (streams) {
        transformAll(in, out, rows, length, work, [](Vec v, float *to) HWY_ATTR { hn::Stream(v, Floats(), to); });
        hwy::FlushStream();
    } else {
        transformAll(in, out, rows, length, work, [](Vec v, float *to) HWY_ATTR { hn::StoreU(v, Floats(), to); });
    }
}

} // namespace planish::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace planish::cpu {

HWY_EXPORT(transformRows);

void hadamardRows(const float *in, float *out, std::size_t rows, std::size_t cols, const Workers &workers)
{
    constexpr std::size_t kRowsPerTask = 64, kCacheBytes = std::size_t(4) << 20, kLine = 64;
    const bool isAligned = reinterpret_cast<std::uintptr_t>(out) % kLine == 0 && cols * sizeof(float) % kLine == 0;
    const int streams = isAligned && rows * cols * sizeof(float) > kCacheBytes ? 1 : 0;
    workers.forEach((rows + kRowsPerTask - 1) / kRowsPerTask, [&](std::size_t task) {
        thread_local std::vector<float> work;
        work.resize(cols + kLine / sizeof(float));
        const auto offset = reinterpret_cast<std::uintptr_t>(work.data()) % kLine;
        float *aligned = work.data() + (kLine - offset) % kLine / sizeof(float);
        const std::size_t begin = task * kRowsPerTask, count = std::min(kRowsPerTask, rows - begin);
        HWY_DYNAMIC_DISPATCH(transformRows)(in + begin * cols, out + begin * cols, count, cols, aligned, streams);
    });
}

} // namespace planish::cpu
#endif
