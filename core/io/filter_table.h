// HDF5 filters by their registered numbers: names, the packages that bring them, and which of them this program undoes itself.
#pragma once

#include <span>
#include <string>

namespace planish {

constexpr int kFilterDeflate = 1, kFilterShuffle = 2, kFilterFletcher32 = 3, kFilterScaleOffset = 6, kFilterLzf = 32000,
              kFilterBlosc = 32001, kFilterLz4 = 32004, kFilterBitshuffle = 32008, kFilterZstd = 32015;

std::string filterName(int id);    ///< "blosc", "unregistered"
std::string filterPackage(int id); ///< Python package that can rewrite such files, empty if unknown
bool isLossyFilter(int id, std::span<const unsigned> values, bool floats);

/// True when ChunkDecoder (core/io/chunk_decoder.h) undoes it.
bool isOwnFilter(int id);

} // namespace planish
