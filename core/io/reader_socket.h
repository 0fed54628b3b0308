// Inside core/io only: whole messages over the socket between this program and its reader process.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace planish {

/// Sends a length and the bytes; false when the other end is gone.
bool sendFrame(int socket, std::span<const std::byte> bytes);

/// Waits for one message; false when the other end is gone or the message is longer than kLongestAnswer.
bool receiveFrame(int socket, std::vector<std::byte> &bytes);

/// Receives what is there without waiting. Returns the number of bytes, 0 when the other end is gone, -1 when nothing is there yet.
long receiveSome(int socket, std::span<std::byte> out);

} // namespace planish
