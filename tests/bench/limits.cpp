#include "tests/bench/limits.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "kernels/cpu/workers.h"

namespace planish::bench {

namespace {
constexpr std::size_t kLine = 64, kPart = std::size_t(1) << 20, kReadBlock = std::size_t(32) << 20;
}

void AlignedFree::operator()(void *p) const
{
    std::free(p);
}

void *alignedBytes(std::size_t bytes)
{
    return std::aligned_alloc(kLine, (bytes + kLine - 1) / kLine * kLine);
}

double medianSeconds(const std::function<void()> &body, int runs)
{
    body();
    std::vector<double> seconds;
    for (int i = 0; i < runs; ++i) {
        const auto start = std::chrono::steady_clock::now();
        body();
        seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::ranges::sort(seconds);
    return seconds[seconds.size() / 2];
}

double readSeconds(const void *data, std::size_t bytes, int threads)
{
    const cpu::Workers workers(threads);
    const std::size_t parts = bytes / kPart;
    std::vector<std::uint64_t> sums(parts);
    return medianSeconds([&] {
        workers.forEach(parts, [&](std::size_t part) {
            constexpr std::size_t kLanes = 32;
            std::uint64_t lanes[kLanes] = {};
            const auto *words = static_cast<const std::uint64_t *>(data) + part * (kPart / 8);
            for (std::size_t i = 0; i < kPart / 8; i += kLanes) {
                for (std::size_t j = 0; j < kLanes; ++j) {
                    lanes[j] ^= words[i + j];
                }
            }
            for (const auto lane : lanes) {
                sums[part] ^= lane;
            }
        });
    });
}

double copySeconds(const void *from, void *to, std::size_t bytes, int threads)
{
    const cpu::Workers workers(threads);
    return medianSeconds([&] {
        workers.forEach(bytes / kPart, [&](std::size_t part) {
            std::memcpy(static_cast<std::byte *>(to) + part * kPart, static_cast<const std::byte *>(from) + part * kPart, kPart);
        });
    });
}

double preadSeconds(const char *path)
{
    const int file = open(path, O_RDONLY);
    require(file >= 0, "the benchmark file cannot be opened");
    const auto buffer = alignedBuffer<std::byte>(kReadBlock);
    const double seconds = medianSeconds(
        [&] {
            off_t offset = 0;
            for (ssize_t got; (got = pread(file, buffer.get(), kReadBlock, offset)) > 0;) {
                offset += got;
            }
        },
        3);
    close(file);
    return seconds;
}

void require(bool holds, const char *sentence)
{
    if (!holds) {
        std::fprintf(stderr, "error: benchmark: %s; timing a wrong result was refused\n", sentence);
        std::exit(1);
    }
}

} // namespace planish::bench
