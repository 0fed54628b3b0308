#include "core/io/file_key.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "core/io/raw_file.h"

namespace planish {

struct Sha256::State {
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : m_state(std::make_unique<State>())
{
    EVP_DigestInit_ex(m_state->context, EVP_sha256(), nullptr);
}

Sha256::~Sha256() = default;

void Sha256::add(std::span<const std::byte> bytes)
{
    EVP_DigestUpdate(m_state->context, bytes.data(), bytes.size());
}

void Sha256::add(std::string_view text)
{
    add(std::as_bytes(std::span(text.data(), text.size())));
}

std::string Sha256::hex()
{
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    EVP_DigestFinal_ex(m_state->context, digest.data(), &size);
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (unsigned i = 0; i < size; ++i) {
        text += kDigits[digest[i] >> 4];
        text += kDigits[digest[i] & 15];
    }
    return text;
}

std::string sha256Hex(std::span<const std::byte> bytes)
{
    Sha256 hash;
    hash.add(bytes);
    return hash.hex();
}

std::string sha256Hex(std::string_view text)
{
    return sha256Hex(std::as_bytes(std::span(text.data(), text.size())));
}

Expected<std::string> sha256OfFile(const std::string &path, std::stop_token stop)
{
    Expected<RawFile> file = RawFile::open(path);
    if (!file)
        return tl::make_unexpected(file.error());
    constexpr std::uint64_t kBlock = std::uint64_t{4} << 20;
    std::vector<std::byte> block(static_cast<std::size_t>(std::min(kBlock, file->size())));
    Sha256 hash;
    for (std::uint64_t at = 0; at < file->size(); at += kBlock) {
        if (stop.stop_requested())
            return cancelled(path);
        const std::span<std::byte> piece(block.data(), static_cast<std::size_t>(std::min(kBlock, file->size() - at)));
        if (Expected<void> read = file->read(at, piece); !read)
            return tl::make_unexpected(read.error());
        hash.add(piece);
    }
    return hash.hex();
}

Expected<std::string> fileIdentity(const std::string &path)
{
    Expected<RawFile> file = RawFile::open(path);
    if (!file)
        return tl::make_unexpected(file.error());
    std::error_code failed;
    const std::string absolute = std::filesystem::weakly_canonical(path, failed).string();
    Sha256 hash;
    hash.add((failed ? path : absolute) + "\n" + std::to_string(file->size()) + "\n" + std::to_string(file->modified()) + "\n");
    constexpr std::uint64_t kEnd = std::uint64_t{1} << 20;
    std::vector<std::byte> end(static_cast<std::size_t>(std::min(kEnd, file->size())));
    for (const std::uint64_t at : {std::uint64_t{0}, file->size() - end.size()}) {
        if (Expected<void> read = file->read(at, end); !read)
            return tl::make_unexpected(read.error());
        hash.add(end);
    }
    return hash.hex();
}

Expected<std::string> cacheKey(const std::string &path, std::string_view request, std::string_view version)
{
    const Expected<std::string> identity = fileIdentity(path);
    if (!identity)
        return identity;
    return sha256Hex(*identity + "\n" + std::string(request) + "\n" + std::string(version));
}

} // namespace planish
