#include "kernels/cpu/workers.h"

#include <optional>

#if defined(__SANITIZE_THREAD__)
#include <atomic>
#include <thread>
#include <vector>
#endif

#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace planish::cpu {

struct Workers::Arena {
    explicit Arena(int threads) : arena(threads)
    {
        // More threads than cores is slow but lawful (tests ask for it); without the permit the library prints a warning.
        if (threads > tbb::info::default_concurrency()) {
            permit.emplace(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
        }
    }
    std::optional<tbb::global_control> permit;
    mutable tbb::task_arena arena;
};

#if defined(__SANITIZE_THREAD__)

namespace {

// TBB is not instrumented: ThreadSanitizer sees neither its hand-over of a task nor its join, and reports races that are none.
// The same indices on plain threads show the races of the loop bodies themselves.
void onPlainThreads(std::size_t count, int threads, const std::function<void(std::size_t)> &body)
{
    constexpr int kThreads = 4;
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        for (std::size_t i = next++; i < count; i = next++) {
            body(i);
        }
    };
    std::vector<std::thread> others;
    for (int t = 1; t < (threads > 0 ? threads : kThreads); ++t) {
        others.emplace_back(work);
    }
    work();
    for (std::thread &other : others) {
        other.join();
    }
}

} // namespace

#endif

Workers::Workers(int threads) : m_threads(threads), m_arena(threads > 0 ? std::make_unique<Arena>(threads) : nullptr) {}

Workers::~Workers() = default;

void Workers::forEach(std::size_t count, const std::function<void(std::size_t)> &body) const
{
    if (count <= 1 || m_threads == 1) {
        for (std::size_t i = 0; i < count; ++i) {
            body(i);
        }
        return;
    }
#if defined(__SANITIZE_THREAD__)
    return onPlainThreads(count, m_threads, body);
#endif
    // Isolated: while waiting, a thread must not pick up an outer task that may hold the same lock.
    const auto loop = [&] {
        tbb::this_task_arena::isolate([&] {
            tbb::parallel_for(
                tbb::blocked_range<std::size_t>(0, count, 1),
                [&](const tbb::blocked_range<std::size_t> &range) {
                    for (std::size_t i = range.begin(); i < range.end(); ++i) {
                        body(i);
                    }
                },
                tbb::simple_partitioner());
        });
    };
    if (m_arena) {
        m_arena->arena.execute(loop);
    } else {
        loop();
    }
}

} // namespace planish::cpu
