// `.stats` files: mergeable statistics of edges with what they were taken over (tau, phase, skips, part, file key). cli.md
// "Files".
#pragma once

#include <string>
#include <vector>

#include "core/io/ids.h"
#include "core/measure/statistics.h"
#include "core/rows/row_view.h"
#include "core/rows/split.h"

namespace planish
{

struct StoredStatistics {
    EdgeId edge;
    std::int64_t layer = -1;
    std::string site, dtype;
    Statistics statistics;
};

struct StatisticsFile {
    std::string file;    ///< the dump, as given
    std::string fileKey; ///< identity of the dump (core/io/file_key); several after a merge, joined by '+'
    double tau = 6.0;
    Phase phase = Phase::Both;
    std::vector<std::int32_t> skipPositions, skipIds;
    Part part = Part::All;
    std::vector<StoredStatistics> edges;
};

/// Whole file as bytes, little-endian; the cache stores the same bytes.
std::string encodeStatistics(const StatisticsFile &file);
/// `subject` names the source in errors. Every count is checked against the bytes that are there.
Expected<StatisticsFile> decodeStatistics(std::string_view bytes, const std::string &subject);

/// Written to a temporary name and renamed.
Expected<void> saveStatistics(const std::string &path, const StatisticsFile &file);
Expected<StatisticsFile> loadStatistics(const std::string &path);

/// Adds `other` to `into`, edge by edge. Refuses, by name: another tau, phase or skips, an edge of another K or type, and rows of
/// the same dump that both already hold.
Expected<void> mergeStatistics(StatisticsFile &into, const StatisticsFile &other);

} // namespace planish
