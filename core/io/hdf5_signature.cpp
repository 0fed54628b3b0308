#include "core/io/hdf5_signature.h"

#include <algorithm>
#include <array>
#include <optional>

namespace planish {

namespace {

constexpr std::array<unsigned char, 8> kSignature{0x89, 'H', 'D', 'F', 0x0D, 0x0A, 0x1A, 0x0A};

std::uint64_t littleEndian(const std::byte *bytes, std::size_t size)
{
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;)
        value = value << 8 | static_cast<std::uint64_t>(bytes[i]);
    return value;
}

/// The signature stands at 0, 512, 1024, 2048, … (a user block in front).
std::optional<std::uint64_t> findSignature(const RawFile &file)
{
    for (std::uint64_t at = 0; at + kSignature.size() <= file.size(); at = at == 0 ? 512 : at * 2) {
        std::array<std::byte, 8> bytes{};
        if (!file.read(at, bytes))
            return std::nullopt;
        if (std::equal(bytes.begin(), bytes.end(), kSignature.begin(),
                       [](std::byte a, unsigned char b) { return static_cast<unsigned char>(a) == b; }))
            return at;
    }
    return std::nullopt;
}

/// End of the file as its superblock states it; nothing when the superblock is cut or of an unknown version.
std::optional<std::uint64_t> statedEnd(const RawFile &file, std::uint64_t signatureAt)
{
    std::array<std::byte, 96> block{};
    const std::uint64_t available = std::min<std::uint64_t>(block.size(), file.size() - signatureAt);
    if (available < 48 || !file.read(signatureAt, std::span(block.data(), static_cast<std::size_t>(available))))
        return std::nullopt;
    const unsigned version = static_cast<unsigned>(block[8]);
    const std::size_t offsetBytes = static_cast<std::size_t>(block[version < 2 ? 13 : 9]);
    if (version > 3 || offsetBytes == 0 || offsetBytes > 8)
        return std::nullopt;
    const std::size_t addresses = version == 0 ? 24 : version == 1 ? 28 : 12;
    const std::size_t at = addresses + 2 * offsetBytes;
    if (at + offsetBytes > available)
        return std::nullopt;
    return littleEndian(block.data() + at, offsetBytes);
}

} // namespace

Expected<void> checkSignature(const RawFile &file)
{
    const std::string &path = file.path();
    const std::optional<std::uint64_t> signatureAt = findSignature(file);
    if (!signatureAt)
        return dataError(path,
                         file.size() < kSignature.size() ? "is too short to be HDF5" : "is not an HDF5 file (no signature)",
                         "an HDF5 file that begins with \\x89HDF");
    if (file.size() - *signatureAt < 48)
        return dataError(path, "is truncated: " + std::to_string(file.size()) + " bytes do not hold a superblock",
                         "the complete file");
    const std::optional<std::uint64_t> end = statedEnd(file, *signatureAt);
    if (end && file.size() < *end)
        return dataError(path,
                         "is truncated: it holds " + std::to_string(file.size()) + " of " + std::to_string(*end) + " bytes",
                         "the complete file (a writer may still hold it open)");
    return {};
}

} // namespace planish
