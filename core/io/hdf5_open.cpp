// Opening: what a reader can know before libhdf5 sees the file (signature, length), then the open itself.
#include <hdf5.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "core/io/file_lock.h"
#include "core/io/hdf5_file.h"
#include "core/io/raw_file.h"

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

Expected<void> checkBeforeOpening(const std::string &path)
{
    const Expected<RawFile> file = RawFile::open(path);
    if (!file)
        return tl::make_unexpected(file.error());
    const std::optional<std::uint64_t> signatureAt = findSignature(*file);
    if (!signatureAt)
        return dataError(path,
                         file->size() < kSignature.size() ? "is too short to be HDF5" : "is not an HDF5 file (no signature)",
                         "an HDF5 file that begins with \\x89HDF");
    if (file->size() - *signatureAt < 48)
        return dataError(path, "is truncated: " + std::to_string(file->size()) + " bytes do not hold a superblock",
                         "the complete file");
    const std::optional<std::uint64_t> end = statedEnd(*file, *signatureAt);
    if (end && file->size() < *end)
        return dataError(path,
                         "is truncated: it holds " + std::to_string(file->size()) + " of " + std::to_string(*end) + " bytes",
                         "the complete file (a writer may still hold it open)");
    return {};
}

/// The first file-locking or consistency sentence in the error stack, else the innermost one.
std::string openFailure()
{
    struct Found {
        std::string lock, innermost;
    } found;
    H5Ewalk2(
        H5E_DEFAULT, H5E_WALK_UPWARD,
        [](unsigned, const H5E_error2_t *record, void *data) -> herr_t {
            auto &result = *static_cast<Found *>(data);
            const std::string text = record->desc != nullptr ? record->desc : "";
            if (result.innermost.empty())
                result.innermost = text;
            if (result.lock.empty() && isLockFailure(text))
                result.lock = text;
            return 0;
        },
        &found);
    return found.lock.empty() ? found.innermost : found.lock;
}

} // namespace

Expected<std::shared_ptr<const Hdf5File>> Hdf5File::open(const std::string &path, const OpenOptions &options)
{
    if (const Expected<void> checked = checkBeforeOpening(path); !checked)
        return tl::make_unexpected(checked.error());
    const Hdf5Lock lock;
    const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    // A file system that knows no locks is no reason to refuse; a lock somebody holds is.
    H5Pset_file_locking(access.get(), options.noLock ? 0 : 1, 1);
    auto file = std::make_shared<Hdf5File>();
    file->m_path = path;
    file->m_file = Hdf5Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
    if (!file->m_file) {
        const std::string reason = openFailure();
        file->m_file = Hdf5Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, access.get()), H5Fclose);
        if (!file->m_file && isLockFailure(reason))
            return lockError(path, reason);
        if (!file->m_file)
            return dataError(path, "cannot be opened as HDF5 (" + reason + ")", "an intact HDF5 file");
    }
    if (options.trustLinks) {
        const std::string folder = std::filesystem::path(path).parent_path().string();
        file->m_trustedFolder = folder.empty() ? "." : folder;
    }
    return std::shared_ptr<const Hdf5File>(std::move(file));
}

} // namespace planish
