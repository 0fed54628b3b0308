// Inside core/io only: one dataset as a DatasetInfo, or the reason why it is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/io/file_structure.h"
#include "core/io/filter_table.h"

namespace planish {

/// Largest decoded chunk and largest declared dataset without data behind it that are still read.
constexpr std::uint64_t kChunkBudget = std::uint64_t{128} << 20;
constexpr std::uint64_t kDatasetBudget = std::uint64_t{1} << 44;
constexpr std::uint64_t kUnbackedBudget = std::uint64_t{1} << 30;

struct ChunkFilter {
    int id = 0;
    std::vector<unsigned> values; ///< client data
};

struct DescribedDataset {
    DatasetInfo info;
    std::string refused;            ///< why it is not listed, empty if it is
    std::vector<std::string> notes; ///< lossy filters
};

/// `trustedFolder` empty: external raw data and virtual datasets are refused. Under an Hdf5Lock.
DescribedDataset describeDataset(std::int64_t dataset, const std::string &path, const std::string &trustedFolder);

/// The filter pipeline with its client data.
std::vector<ChunkFilter> chunkFilters(std::int64_t creationList);

} // namespace planish
