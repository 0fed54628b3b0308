#include "core/io/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace planish {

namespace {

/// The directory entry is data too: without this a rename may be lost in a crash.
void syncFolderOf(const std::string &path)
{
    std::string folder = std::filesystem::path(path).parent_path().string();
    if (folder.empty())
        folder = ".";
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        return;
    ::fsync(descriptor);
    ::close(descriptor);
}

} // namespace

tl::unexpected<Error> writeError(const std::string &path, int systemError)
{
    const std::string reason = std::strerror(systemError);
    if (systemError == ENOSPC || systemError == EDQUOT || systemError == EIO)
        return machineError(path, "cannot be written (" + reason + ")", "a disk with enough free space");
    return dataError(path, "cannot be written (" + reason + ")", "a folder that exists and may be written");
}

std::string temporaryNameFor(const std::string &path)
{
    static std::atomic<unsigned> counter{0};
    return path + ".tmp" + std::to_string(::getpid()) + "." + std::to_string(counter++);
}

void removeQuietly(const std::string &path)
{
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
}

Expected<void> renameIntoPlace(const std::string &temporary, const std::string &path)
{
    const int descriptor = ::open(temporary.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return writeError(path, errno);
    const int synced = ::fsync(descriptor);
    const int reason = errno;
    ::close(descriptor);
    if (synced != 0)
        return writeError(path, reason);
    if (std::rename(temporary.c_str(), path.c_str()) != 0)
        return writeError(path, errno);
    syncFolderOf(path);
    return {};
}

AtomicFile::AtomicFile(std::string path, std::string temporary, int descriptor)
    : m_path(std::move(path)), m_temporary(std::move(temporary)), m_descriptor(descriptor)
{
}

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : m_path(std::move(other.m_path)), m_temporary(std::move(other.m_temporary)),
      m_descriptor(std::exchange(other.m_descriptor, -1))
{
}

AtomicFile &AtomicFile::operator=(AtomicFile &&other) noexcept
{
    if (this != &other) {
        discard();
        m_path = std::move(other.m_path);
        m_temporary = std::move(other.m_temporary);
        m_descriptor = std::exchange(other.m_descriptor, -1);
    }
    return *this;
}

AtomicFile::~AtomicFile()
{
    discard();
}

void AtomicFile::discard()
{
    if (m_descriptor < 0)
        return;
    ::close(m_descriptor);
    m_descriptor = -1;
    removeQuietly(m_temporary);
}

Expected<AtomicFile> AtomicFile::create(const std::string &path)
{
    std::string temporary = temporaryNameFor(path);
    const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return writeError(path, errno);
    return AtomicFile(path, std::move(temporary), descriptor);
}

Expected<void> AtomicFile::write(std::span<const std::byte> bytes)
{
    while (!bytes.empty()) {
        const ssize_t written = ::write(m_descriptor, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            const int reason = errno;
            discard();
            return writeError(m_path, reason);
        }
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return {};
}

Expected<void> AtomicFile::write(std::string_view text)
{
    return write(std::as_bytes(std::span(text.data(), text.size())));
}

Expected<void> AtomicFile::commit()
{
    if (m_descriptor < 0)
        return dataError(m_path, "has already been written or given up", "one commit for each file");
    const int descriptor = std::exchange(m_descriptor, -1);
    if (::close(descriptor) != 0) {
        const int reason = errno;
        removeQuietly(m_temporary);
        return writeError(m_path, reason);
    }
    Expected<void> renamed = renameIntoPlace(m_temporary, m_path);
    if (!renamed)
        removeQuietly(m_temporary);
    return renamed;
}

Expected<void> writeFileAtomically(const std::string &path, std::string_view text)
{
    Expected<AtomicFile> file = AtomicFile::create(path);
    if (!file)
        return tl::make_unexpected(file.error());
    if (Expected<void> written = file->write(text); !written)
        return written;
    return file->commit();
}

} // namespace planish
