#include "core/run/run_merge.h"

#include "core/measure/statistics_file.h"

namespace planish {

Expected<Analysis> mergeStatisticsFiles(const std::vector<std::string> &files, const std::string &out)
{
    auto merged = loadStatistics(files.front());
    if (!merged)
        return tl::make_unexpected(merged.error());
    for (std::size_t i = 1; i < files.size(); ++i) {
        auto next = loadStatistics(files[i]);
        if (!next)
            return tl::make_unexpected(next.error());
        if (auto done = mergeStatistics(*merged, *next); !done)
            return tl::make_unexpected(done.error());
    }
    if (!out.empty()) {
        if (auto saved = saveStatistics(out, *merged); !saved)
            return tl::make_unexpected(saved.error());
    }
    Analysis analysis;
    analysis.file = merged->file;
    for (const StoredStatistics &stored : merged->edges) {
        EdgeAnalysis edge;
        edge.edge = stored.edge;
        edge.layer = stored.layer;
        edge.site = stored.site;
        edge.dtype = stored.dtype;
        edge.statistics = std::make_shared<const Statistics>(stored.statistics);
        edge.concentration = concentrationOf(stored.statistics);
        analysis.edges.push_back(std::move(edge));
    }
    analysis.notes.push_back("merged from " + std::to_string(files.size()) + " files; findings need the dump itself");
    return analysis;
}

} // namespace planish
