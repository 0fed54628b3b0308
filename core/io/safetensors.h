// safetensors: the header checked to the last byte before anything is allocated, and a writer that streams. formats.md 7.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/io/checkpoint.h"
#include "core/io/error.h"

namespace planish {

struct SafetensorsHeader {
    std::vector<StoredTensor> tensors; ///< in file order; offsets from the start of the file
    std::map<std::string, std::string> metadata;
    std::uint64_t dataBegin = 0;
};

/// Errors, one sentence each: header length, JSON, nesting, duplicate names, dtype, shape, ranges beyond the file, overlaps, holes.
/// dtypes of the format without a StoredType of ours (F4, F6, E8M0, C64) open as Other.
Expected<SafetensorsHeader> readSafetensorsHeader(const std::string &path);

/// "F16", "BF16", "F8_E4M3" …; empty for Text and Other.
std::string_view safetensorsName(StoredType type);

struct TensorSpec {
    std::string name;
    StoredType type = StoredType::F16;
    std::vector<std::uint64_t> shape;
};

/// Writes the header from the sizes, then the tensors in the order of the specs; the file appears whole or not at all.
class SafetensorsWriter {
public:
    static Expected<SafetensorsWriter> create(const std::string &path, std::vector<TensorSpec> specs,
                                              const std::map<std::string, std::string> &metadata);
    /// The next bytes of the tensor whose turn it is; pieces may be of any size but must not cross a tensor's end.
    Expected<void> append(std::span<const std::byte> bytes);
    /// A whole tensor; its name must be the next one.
    Expected<void> writeTensor(std::string_view name, std::span<const std::byte> bytes);
    Expected<void> finish();

private:
    SafetensorsWriter(std::string path, AtomicFile file, std::vector<TensorSpec> specs);
    void skipFinished();

    std::string m_path;
    AtomicFile m_file;
    std::vector<TensorSpec> m_specs;
    std::size_t m_next = 0;
    std::uint64_t m_written = 0; ///< bytes of the current tensor
};

} // namespace planish
