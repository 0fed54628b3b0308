#include "core/measure/statistics_file.h"

#include <algorithm>
#include <cstdio>
#include <unordered_set>

#include "core/io/atomic_file.h"
#include "core/io/raw_file.h"

namespace planish
{

namespace
{

std::string nameOf(Phase phase)
{
    return phase == Phase::Prefill ? "prefill" : phase == Phase::Decode ? "decode" : "both";
}

std::string shortText(double value)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

std::string listOf(const std::vector<std::int32_t> &values)
{
    std::string text;
    for (std::int32_t value : values)
        text.append(text.empty() ? "" : ",").append(std::to_string(value));
    return text.empty() ? "none" : text;
}

Expected<void> checkSameRequest(const StatisticsFile &into, const StatisticsFile &other)
{
    const auto differs = [&](const char *what, const std::string &a, const std::string &b) {
        return dataError(other.file, std::string(what) + " is " + b + " here and " + a + " in " + into.file,
                         "statistics taken alike");
    };
    if (into.tau != other.tau)
        return differs("tau", shortText(into.tau), shortText(other.tau));
    if (into.phase != other.phase)
        return differs("phase", nameOf(into.phase), nameOf(other.phase));
    if (into.skipPositions != other.skipPositions)
        return differs("skip-positions", listOf(into.skipPositions), listOf(other.skipPositions));
    if (into.skipIds != other.skipIds)
        return differs("skip-ids", listOf(into.skipIds), listOf(other.skipIds));
    return {};
}

bool sharesRow(const TokenSums &a, const TokenSums &b)
{
    const std::unordered_set<std::int64_t> rows(a.row.begin(), a.row.end());
    return std::any_of(b.row.begin(), b.row.end(), [&](std::int64_t row) { return rows.contains(row); });
}

Expected<void> checkEdge(const StatisticsFile &into, const StoredStatistics &mine, const StatisticsFile &other,
                         const StoredStatistics &theirs)
{
    const std::string &edge = mine.edge.value;
    if (mine.statistics.channels != theirs.statistics.channels)
        return dataError(edge,
                         "K is " + std::to_string(mine.statistics.channels) + " in " + into.file + " and " +
                             std::to_string(theirs.statistics.channels) + " in " + other.file,
                         "edges of one width");
    if (mine.statistics.kind != theirs.statistics.kind)
        return dataError(edge, "it is " + mine.dtype + " in " + into.file + " and " + theirs.dtype + " in " + other.file,
                         "edges of one stored type");
    if (into.fileKey == other.fileKey && sharesRow(mine.statistics.token, theirs.statistics.token))
        return dataError(edge, "both hold the same rows of " + into.file, "disjoint parts of a file, or different files");
    return {};
}

// Parts of one file share its rows: what is masked stays masked, what the other part counted is no longer left out.
void mergeLeftOut(const Statistics &other, bool sameFile, Statistics &merged)
{
    if (!sameFile)
        return;
    merged.rowsInFile -= other.rowsInFile;
    merged.masked -= other.masked;
    const std::uint64_t known = merged.masked + merged.tokens;
    merged.skipped = merged.rowsInFile > known ? merged.rowsInFile - known : 0;
}

} // namespace

Expected<void> saveStatistics(const std::string &path, const StatisticsFile &file)
{
    return writeFileAtomically(path, encodeStatistics(file));
}

Expected<StatisticsFile> loadStatistics(const std::string &path)
{
    auto raw = RawFile::open(path);
    if (!raw)
        return tl::make_unexpected(raw.error());
    std::string bytes(raw->size(), '\0');
    if (auto done = raw->read(0, std::as_writable_bytes(std::span(bytes))); !done)
        return tl::make_unexpected(done.error());
    return decodeStatistics(bytes, path);
}

Expected<void> mergeStatistics(StatisticsFile &into, const StatisticsFile &other)
{
    if (auto same = checkSameRequest(into, other); !same)
        return same;
    const bool sameFile = into.fileKey == other.fileKey;
    for (const StoredStatistics &theirs : other.edges) {
        const auto mine =
            std::find_if(into.edges.begin(), into.edges.end(), [&](const auto &e) { return e.edge == theirs.edge; });
        if (mine == into.edges.end()) {
            into.edges.push_back(theirs);
            continue;
        }
        if (auto fits = checkEdge(into, *mine, other, theirs); !fits)
            return fits;
        if (auto done = mine->statistics.merge(theirs.statistics); !done)
            return done;
        mergeLeftOut(theirs.statistics, sameFile, mine->statistics);
    }
    if (!sameFile) {
        into.file += "+" + other.file;
        into.fileKey += "+" + other.fileKey;
    }
    if (into.part != other.part)
        into.part = Part::All;
    return {};
}

} // namespace planish
