// Inside core/io only: filter numbers in words, and the chunk filters undone by ourselves so that a bad chunk can never pass for
// data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/io/error.h"

namespace planish {

constexpr int kFilterDeflate = 1, kFilterShuffle = 2, kFilterFletcher32 = 3, kFilterScaleOffset = 6, kFilterLzf = 32000;

struct ChunkFilter {
    int id = 0;
    std::vector<unsigned> values; ///< client data; of shuffle: [0] = bytes of an element
};

std::string filterName(int id);    ///< "blosc", "filter 40000" when unregistered
std::string filterPackage(int id); ///< Python package that can rewrite such files, empty if unknown
bool isLossyFilter(int id, std::span<const unsigned> values, bool floats);

/// True when `undoFilters` knows the filter.
bool isOwnFilter(int id);

/// Undoes the pipeline (in reverse order, skipping filters whose bit is set in `skipped`). The result has exactly `bytes` bytes:
/// shorter and longer streams, damaged ones and wrong checksums are errors (subject left empty, the caller knows the chunk).
Expected<std::vector<std::byte>> undoFilters(std::vector<std::byte> stored, std::span<const ChunkFilter> filters,
                                             std::uint32_t skipped, std::size_t bytes);

} // namespace planish
