// SHA-256 of bytes and files, and the key under which results of a file are cached (design.md "Result cache").
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/io/error.h"

namespace planish {

/// Running SHA-256; `hex` ends it.
class Sha256 {
public:
    Sha256();
    ~Sha256();
    Sha256(const Sha256 &) = delete;
    Sha256 &operator=(const Sha256 &) = delete;
    void add(std::span<const std::byte> bytes);
    void add(std::string_view text);
    std::string hex(); ///< 64 lower-case digits

private:
    struct State;
    std::unique_ptr<State> m_state;
};

std::string sha256Hex(std::span<const std::byte> bytes);
std::string sha256Hex(std::string_view text);
/// Hash of a whole file, read in blocks; checks `stop` between them.
Expected<std::string> sha256OfFile(const std::string &path, std::stop_token stop = {});

/// SHA-256 over absolute path, size, mtime and the first and last MiB: the identity of a file without reading it whole.
Expected<std::string> fileIdentity(const std::string &path);
/// Cache key: identity, request text (tau, mask, phase …) and program version.
Expected<std::string> cacheKey(const std::string &path, std::string_view request, std::string_view version);

} // namespace planish
