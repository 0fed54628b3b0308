// Blocks of bytes of one dataset, as stored. Second of the two seams around libhdf5: no type conversion happens here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/io/file_structure.h"

namespace planish {

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
    /// Variable-length or fixed text datasets, whole.
    virtual Expected<std::vector<std::string>> readText(const DatasetInfo &dataset) = 0;
};

} // namespace planish
