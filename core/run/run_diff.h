// The verb `diff`: the geometry of two dumps edge by edge, for two models, checkpoints or calibration sets. cli.md.
#pragma once

#include "core/run/engine.h"

namespace planish {

struct DiffRequest {
    std::vector<std::string> edges; ///< globs, empty = all
    RowRequest rows;
};

/// How a channel's maximum moved from the first file to the second.
struct ChannelShift {
    std::int64_t channel = 0;
    double before = 0, after = 0;
};

/// Ids of findings. `withinStability`: gained or lost ones that come and go with the rows drawn from their own file.
struct FindingChanges {
    std::vector<std::string> gained, lost, kept, withinStability;
};

struct EdgeDifference {
    EdgeId edge;
    std::string onlyIn; ///< the file that alone has the edge, empty when both do
    std::optional<double> maxToMedian[2], c1pct[2], meanIncoherence[2];
    std::vector<ChannelShift> channelShift; ///< largest change of max_abs first, at most 8; empty when the widths differ
    FindingChanges findings;
};

struct Difference {
    std::string files[2];
    std::vector<EdgeDifference> edges; ///< order of the first file, then what only the second has
    std::vector<std::string> notes;
};

/// Two edges of one name, or one and nothing (null).
EdgeDifference differenceOf(const EdgeAnalysis *before, const EdgeAnalysis *after, const std::string (&files)[2]);

Expected<Difference> runDiff(const Engine &engine, const Opened &before, const Opened &after, const DiffRequest &request,
                             std::stop_token stop, const ProgressSink &progress);

nlohmann::ordered_json toJson(const Difference &difference);
/// One row an edge: figures of both files and counts of findings.
Expected<void> writeDifferenceCsv(const Difference &difference, const std::string &file);

} // namespace planish
