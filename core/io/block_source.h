// Blocks of bytes of one dataset, as stored. Second of the two seams around libhdf5: no type conversion happens here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/io/file_structure.h"

namespace planish {

class RawFile;

/// Numbers that lie in one unbroken run of the file, row-major. The file is the source's and lives as long.
struct StoredRun {
    const RawFile *file = nullptr;
    std::uint64_t offset = 0;
};

/// Reads rows [begin, end) along axis 0 of a dataset (a row = all trailing axes) as stored bytes.
/// Thread: one reader at a time. Errors name file and path inside it; a short chunk is an error, never stale memory.
class BlockSource {
public:
    virtual ~BlockSource() = default;
    virtual Expected<void> readRows(const DatasetInfo &dataset, std::uint64_t begin, std::uint64_t end,
                                    std::span<std::byte> out) = 0;
    /// A box of the dataset, row-major: `start` and `count` have one entry per axis. Costs no more than the box and the chunks it
    /// touches.
    virtual Expected<void> readBox(const DatasetInfo &dataset, const std::vector<std::uint64_t> &start,
                                   const std::vector<std::uint64_t> &count, std::span<std::byte> out) = 0;
    /// Where the dataset lies when it can be read without this source, from any thread; nothing when it cannot.
    virtual std::optional<StoredRun> storedRun(const DatasetInfo &) { return std::nullopt; }
    /// Variable-length or fixed text datasets, whole.
    virtual Expected<std::vector<std::string>> readText(const DatasetInfo &dataset) = 0;
};

} // namespace planish
