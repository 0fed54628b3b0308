#include "core/io/raw_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace planish {

Expected<RawFile> RawFile::open(const std::string &path)
{
    RawFile file;
    file.m_path = path;
    file.m_descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file.m_descriptor < 0)
        return dataError(path, std::string("cannot be opened (") + std::strerror(errno) + ")",
                         "a file that exists and may be read");
    struct stat facts = {};
    if (::fstat(file.m_descriptor, &facts) != 0 || !S_ISREG(facts.st_mode))
        return dataError(path, S_ISDIR(facts.st_mode) ? "is a folder" : "is no regular file", "a file");
    file.m_size = static_cast<std::uint64_t>(facts.st_size);
    file.m_modified = static_cast<std::int64_t>(facts.st_mtim.tv_sec) * 1'000'000'000 + facts.st_mtim.tv_nsec;
    return file;
}

RawFile::RawFile(RawFile &&other) noexcept
    : m_path(std::move(other.m_path)), m_descriptor(std::exchange(other.m_descriptor, -1)), m_size(other.m_size),
      m_modified(other.m_modified)
{
}

RawFile &RawFile::operator=(RawFile &&other) noexcept
{
    if (this != &other) {
        if (m_descriptor >= 0)
            ::close(m_descriptor);
        m_path = std::move(other.m_path);
        m_descriptor = std::exchange(other.m_descriptor, -1);
        m_size = other.m_size;
        m_modified = other.m_modified;
    }
    return *this;
}

RawFile::~RawFile()
{
    if (m_descriptor >= 0)
        ::close(m_descriptor);
}

Expected<void> RawFile::read(std::uint64_t offset, std::span<std::byte> out) const
{
    while (!out.empty()) {
        const ssize_t got = ::pread(m_descriptor, out.data(), out.size(), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return dataError(m_path, "byte " + std::to_string(offset) + " cannot be read (" + std::strerror(errno) + ")",
                             "a readable disk");
        if (got == 0)
            return dataError(m_path, "ends at byte " + std::to_string(offset) + ", truncated while it was read",
                             std::to_string(out.size()) + " more bytes");
        out = out.subspan(static_cast<std::size_t>(got));
        offset += static_cast<std::uint64_t>(got);
    }
    return {};
}

} // namespace planish
