#include "core/io/reader_socket.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "core/io/reader_protocol.h"

namespace planish {

namespace {

bool sendAll(int socket, std::span<const std::byte> bytes)
{
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
    return true;
}

bool receiveAll(int socket, std::span<std::byte> out)
{
    while (!out.empty()) {
        const ssize_t got = ::recv(socket, out.data(), out.size(), MSG_WAITALL);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        out = out.subspan(static_cast<std::size_t>(got));
    }
    return true;
}

} // namespace

bool sendFrame(int socket, std::span<const std::byte> bytes)
{
    const std::uint64_t size = bytes.size();
    return sendAll(socket, std::as_bytes(std::span(&size, 1))) && sendAll(socket, bytes);
}

bool receiveFrame(int socket, std::vector<std::byte> &bytes)
{
    std::uint64_t size = 0;
    if (!receiveAll(socket, std::as_writable_bytes(std::span(&size, 1))) || size > kLongestAnswer)
        return false;
    bytes.resize(static_cast<std::size_t>(size));
    return receiveAll(socket, bytes);
}

long receiveSome(int socket, std::span<std::byte> out)
{
    while (true) {
        const ssize_t got = ::recv(socket, out.data(), out.size(), MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        return got < 0 ? (errno == EAGAIN || errno == EWOULDBLOCK ? -1 : 0) : static_cast<long>(got);
    }
}

} // namespace planish
