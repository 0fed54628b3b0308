// A file opened for positioned reads of raw bytes; thread-safe, never writes. A short read is an error that names file and place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/io/error.h"

namespace planish {

class RawFile {
public:
    /// Refuses folders and special files (a pipe would never end).
    static Expected<RawFile> open(const std::string &path);
    RawFile(RawFile &&other) noexcept;
    RawFile &operator=(RawFile &&other) noexcept;
    ~RawFile();

    const std::string &path() const { return m_path; }
    std::uint64_t size() const { return m_size; }         ///< as of opening
    std::int64_t modified() const { return m_modified; }  ///< mtime in nanoseconds
    Expected<void> read(std::uint64_t offset, std::span<std::byte> out) const;

private:
    RawFile() = default;

    std::string m_path;
    int m_descriptor = -1;
    std::uint64_t m_size = 0;
    std::int64_t m_modified = 0;
};

} // namespace planish
