// An output file that appears whole or not at all: written beside its place under a temporary name, flushed, renamed.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/io/error.h"

namespace planish {

/// Owns the temporary file until `commit`; destroying it before leaves nothing behind. Movable, one thread at a time.
/// Errors: a full disk is a machine error (exit 4), a folder that cannot be written a data error; both name the final path.
class AtomicFile {
public:
    static Expected<AtomicFile> create(const std::string &path);
    AtomicFile(AtomicFile &&other) noexcept;
    AtomicFile &operator=(AtomicFile &&other) noexcept;
    ~AtomicFile();

    Expected<void> write(std::span<const std::byte> bytes);
    Expected<void> write(std::string_view text);
    /// Flushes to disk and renames over the final path.
    Expected<void> commit();

private:
    AtomicFile(std::string path, std::string temporary, int descriptor);
    void discard();

    std::string m_path, m_temporary;
    int m_descriptor = -1;
};

/// Whole small files.
Expected<void> writeFileAtomically(const std::string &path, std::string_view text);

/// A fresh temporary name beside `path`, for libraries that open files themselves; pair with `renameIntoPlace` or `removeQuietly`.
std::string temporaryNameFor(const std::string &path);
/// fsync, then rename `temporary` to `path`.
Expected<void> renameIntoPlace(const std::string &temporary, const std::string &path);
void removeQuietly(const std::string &path);
/// A failed write or open as an error: full disk or quota are machine errors.
tl::unexpected<Error> writeError(const std::string &path, int systemError);

} // namespace planish
