// What kind of file a path is, by its first bytes and its name; and the sentence for pickles, which are never read.
#pragma once

#include <string>

#include "core/io/error.h"

namespace planish {

enum class FileKind { Hdf5, Safetensors, Gguf, ImatrixDat, Folder, Pickle, Unknown };

/// Errors only when the file cannot be opened at all.
Expected<FileKind> fileKindOf(const std::string &path);

/// Says how to convert a .pt, .bin or .pkl file; pickle is never executed and never read.
tl::unexpected<Error> pickleError(const std::string &path);

} // namespace planish
