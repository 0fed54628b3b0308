#include "core/io/file_kind.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "core/io/raw_file.h"

namespace planish {

namespace {

std::string lowerExtension(const std::string &path)
{
    std::string extension = std::filesystem::path(path).extension().string();
    std::transform(extension.begin(), extension.end(), extension.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return extension;
}

bool isPickleName(std::string_view extension)
{
    constexpr std::array<std::string_view, 7> kNames{".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".joblib"};
    return std::find(kNames.begin(), kNames.end(), extension) != kNames.end();
}

bool isHdf5Name(std::string_view extension)
{
    constexpr std::array<std::string_view, 8> kNames{".h5", ".hdf5", ".hdf", ".mat", ".nc", ".h5ad", ".hkl", ".he5"};
    return std::find(kNames.begin(), kNames.end(), extension) != kNames.end();
}

FileKind kindByBytes(std::string_view head)
{
    if (head.starts_with("\x89HDF\r\n\x1a\n"))
        return FileKind::Hdf5;
    if (head.starts_with("GGUF"))
        return FileKind::Gguf;
    // A header length below 2^32 and then the JSON object.
    if (head.size() > 8 && head[8] == '{' && head.substr(4, 4) == std::string_view("\0\0\0\0", 4))
        return FileKind::Safetensors;
    // torch.save is a zip, older pickles start with a protocol mark.
    if (head.starts_with("PK\x03\x04") || (head.size() > 1 && head[0] == '\x80' && head[1] >= 1 && head[1] <= 5))
        return FileKind::Pickle;
    return FileKind::Unknown;
}

} // namespace

Expected<FileKind> fileKindOf(const std::string &path)
{
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored))
        return FileKind::Folder;
    const Expected<RawFile> file = RawFile::open(path);
    if (!file)
        return tl::make_unexpected(file.error());
    std::array<std::byte, 16> bytes{};
    const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), file->size()));
    if (Expected<void> read = file->read(0, std::span(bytes.data(), size)); !read)
        return tl::make_unexpected(read.error());
    const std::string extension = lowerExtension(path);
    const FileKind byBytes = kindByBytes({reinterpret_cast<const char *>(bytes.data()), size});
    if (byBytes == FileKind::Hdf5 || byBytes == FileKind::Gguf || byBytes == FileKind::Pickle)
        return byBytes;
    // Names decide what broken and headerless files were meant to be, so that the message fits.
    if (extension == ".safetensors")
        return FileKind::Safetensors;
    if (isPickleName(extension))
        return FileKind::Pickle;
    if (extension == ".dat")
        return FileKind::ImatrixDat;
    return isHdf5Name(extension) ? FileKind::Hdf5 : byBytes;
}

tl::unexpected<Error> pickleError(const std::string &path)
{
    return dataError(path, "is a pickle (.pt, .bin, .pkl): loading one runs code, so it is never read",
                     "safetensors; convert it with safetensors.torch.save_file(torch.load(FILE, weights_only=True), OUT)");
}

} // namespace planish
