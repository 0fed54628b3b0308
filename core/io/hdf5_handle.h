// Inside core/io only: one lock around libhdf5, handles that close themselves, the library's own words for its last failure.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "core/io/error.h"
#include "core/io/file_structure.h"

namespace planish {

/// Every libhdf5 call happens while one of these lives: the library is not ours to trust with two threads. Recursive, so helpers
/// may nest. Its first use switches off filter plug-ins, path prefixes from the environment and printing of errors.
class Hdf5Lock {
public:
    Hdf5Lock();

private:
    std::unique_lock<std::recursive_mutex> m_lock;
};

/// An HDF5 identifier with its close function. Created, moved and destroyed under an Hdf5Lock.
class Hdf5Handle {
public:
    using Close = int (*)(std::int64_t);
    Hdf5Handle() = default;
    Hdf5Handle(std::int64_t id, Close close) : m_id(id), m_close(close) {}
    Hdf5Handle(Hdf5Handle &&other) noexcept;
    Hdf5Handle &operator=(Hdf5Handle &&other) noexcept;
    ~Hdf5Handle();
    std::int64_t get() const { return m_id; }
    explicit operator bool() const { return m_id >= 0; }

private:
    void close();
    std::int64_t m_id = -1;
    Close m_close = nullptr;
};

/// Innermost description of the library's error stack: "bad version number for layout message". Call right after the failure.
std::string hdf5Reason();
std::string hdf5Version(); ///< "1.10.8"

/// Access list for opening datasets, groups and links. External links are followed only into `trustedFolder` (empty = never).
/// `chunkCacheBytes` > 0 makes it a dataset access list with that chunk cache.
Hdf5Handle linkAccess(const std::string &trustedFolder);
Hdf5Handle datasetAccess(const std::string &trustedFolder, std::size_t chunkCacheBytes = 0);

/// True when `target`, seen from `folder`, lies inside it after resolving symbolic links.
bool insideFolder(const std::string &folder, const std::string &target);

} // namespace planish
