#include "core/io/filter_table.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace planish {

namespace {

struct FilterRow {
    int id;
    std::string_view name;
    std::string_view package;
    bool lossy;
};

constexpr std::array<FilterRow, 21> kFilters{{{1, "gzip", "", false},
                                              {2, "shuffle", "", false},
                                              {3, "fletcher32", "", false},
                                              {4, "szip", "", false},
                                              {5, "nbit", "", false},
                                              {6, "scaleoffset", "", false},
                                              {305, "lzo", "tables", false},
                                              {307, "bzip2", "hdf5plugin", false},
                                              {32000, "lzf", "h5py", false},
                                              {32001, "blosc", "hdf5plugin", false},
                                              {32004, "lz4", "hdf5plugin", false},
                                              {32008, "bitshuffle", "hdf5plugin", false},
                                              {32013, "zfp", "hdf5plugin", true},
                                              {32015, "zstd", "hdf5plugin", false},
                                              {32017, "sz", "hdf5plugin", true},
                                              {32018, "fcidecomp", "hdf5plugin", false},
                                              {32022, "bitgroom", "hdf5plugin", true},
                                              {32023, "bitround", "hdf5plugin", true},
                                              {32024, "sz3", "hdf5plugin", true},
                                              {32026, "blosc2", "hdf5plugin", false},
                                              {32028, "sperr", "hdf5plugin", true}}};

const FilterRow *findFilter(int id)
{
    const auto *const found = std::find_if(kFilters.begin(), kFilters.end(), [id](const FilterRow &row) { return row.id == id; });
    return found == kFilters.end() ? nullptr : found;
}

} // namespace

std::string filterName(int id)
{
    const FilterRow *row = findFilter(id);
    return row != nullptr ? std::string(row->name) : "unregistered";
}

std::string filterPackage(int id)
{
    const FilterRow *row = findFilter(id);
    return row != nullptr ? std::string(row->package) : "";
}

bool isLossyFilter(int id, std::span<const unsigned> values, bool floats)
{
    // Scale-offset drops digits only of floats, in its modes D-scale (0) and E-scale (1).
    if (id == kFilterScaleOffset)
        return floats && !values.empty() && values[0] <= 1;
    const FilterRow *row = findFilter(id);
    return row != nullptr && row->lossy;
}

bool isOwnFilter(int id)
{
    switch (id) {
    case kFilterDeflate:
    case kFilterShuffle:
    case kFilterFletcher32:
    case kFilterLzf:
    case kFilterBlosc:
    case kFilterLz4:
    case kFilterBitshuffle:
    case kFilterZstd:
        return true;
    default:
        return false;
    }
}

} // namespace planish
