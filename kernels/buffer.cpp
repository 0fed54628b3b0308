#include "kernels/buffer.h"

#include <cstdlib>
#include <new>

#include <sys/mman.h>

namespace planish {

void *allocateAligned(std::size_t bytes)
{
    constexpr std::size_t kLine = 64, kLargePage = std::size_t(2) << 20;
    const std::size_t alignment = bytes >= 2 * kLargePage ? kLargePage : kLine;
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void *block = std::aligned_alloc(alignment, rounded > 0 ? rounded : kLine);
    if (!block) {
        throw std::bad_alloc();
    }
    if (alignment == kLargePage) {
        madvise(block, rounded, MADV_HUGEPAGE); // advice only: refusal changes nothing but speed
    }
    return block;
}

void FreeAligned::operator()(void *block) const
{
    std::free(block);
}

} // namespace planish
