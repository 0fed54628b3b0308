// What this machine can do right now: read, copy and float product limits, measured in the run that uses them, same threads.
// Benchmarks print ratios against these; absolute times do not carry over between machines.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

namespace planish::bench {

/// Uninitialised memory on a cache line; touched by the caller.
struct AlignedFree {
    void operator()(void *p) const;
};
template <class T> using AlignedBuffer = std::unique_ptr<T[], AlignedFree>;
void *alignedBytes(std::size_t bytes);
template <class T> AlignedBuffer<T> alignedBuffer(std::size_t count)
{
    return AlignedBuffer<T>(static_cast<T *>(alignedBytes(count * sizeof(T))));
}

/// Seconds of the median of `runs` calls after one warm-up.
double medianSeconds(const std::function<void()> &body, int runs = 9);

/// Seconds to read / copy that many bytes of memory with `threads` threads.
double readSeconds(const void *data, std::size_t bytes, int threads);
double copySeconds(const void *from, void *to, std::size_t bytes, int threads);

/// Seconds of a plain pread of a warm file into one reused 32 MiB buffer.
double preadSeconds(const char *path);

/// Ends the program with a sentence: a benchmark never times a wrong result.
void require(bool holds, const char *sentence);

} // namespace planish::bench
