// What an Engine keeps between requests: the data of the most recent few edges, so that a dragged slider loads nothing.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "core/run/engine.h"

namespace planish {

/// Most recent edges first; thread-safe behind the mutex.
struct Engine::State {
    struct Entry {
        std::string key; ///< file, weights, edge and everything of the options that decides the data
        std::shared_ptr<const EdgeData> data;
    };
    std::mutex mutex;
    std::list<Entry> recent;
    std::size_t capacity = 4;
};

} // namespace planish
