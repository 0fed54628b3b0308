// Threads of one backend: an own TBB arena of at most `threads`, or the caller's arena when none were asked for.
// Loops hand out fixed indices, so results never depend on how many threads take them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace planish::cpu {

class Workers {
public:
    explicit Workers(int threads = 0); ///< 0 = the arena of the calling thread
    ~Workers();
    Workers(const Workers &) = delete;
    Workers &operator=(const Workers &) = delete;

    /// body(i) for i in [0, count), each exactly once, in any order; returns when all are done.
    void forEach(std::size_t count, const std::function<void(std::size_t)> &body) const;
    int threads() const { return m_threads; } ///< as asked, 0 = all

private:
    struct Arena;
    int m_threads;
    std::unique_ptr<Arena> m_arena;
};

} // namespace planish::cpu
