// The rules behind findOn, one function a rule (or a pair that shares its scan). Internal to core/geometry.
#pragma once

#include <functional>
#include <memory>

#include "core/geometry/bootstrap.h"
#include "core/geometry/edge_weights.h"
#include "core/geometry/findings.h"

namespace planish {

/// What every rule looks at. Borrowed for one call of findOn.
struct RuleContext {
    const Opened &opened;
    const Edge &edge;
    const DumpEdge &dumpEdge;
    const Statistics &statistics;
    const RuleThresholds &thresholds;
    const EdgeWeights &weights;
    const BootstrapDraws &draws;
    std::stop_token stop;

    std::size_t indexOfRow(std::int64_t fileRow) const; ///< among the counted rows
    std::optional<double> shareWithRow(std::int64_t fileRow, const std::function<bool(std::size_t draw)> &also = {}) const;
};
using Findings = std::vector<Finding>;
using Rule = Expected<Findings> (*)(const RuleContext &);

Expected<Findings> valueOutlier(const RuleContext &context);
Expected<Findings> persistentAbsolute(const RuleContext &context);
Expected<Findings> persistentRelative(const RuleContext &context);
Expected<Findings> rareToken(const RuleContext &context);
Expected<Findings> massiveActivation(const RuleContext &context);
Expected<Findings> superWeightCandidate(const RuleContext &context);
Expected<Findings> asymmetricChannel(const RuleContext &context);
Expected<Findings> deadChannel(const RuleContext &context);
Expected<Findings> constantChannel(const RuleContext &context);
Expected<Findings> deadInCalibration(const RuleContext &context);
Expected<Findings> weightOutlier(const RuleContext &context);
Expected<Findings> sensitiveChannel(const RuleContext &context);
Expected<Findings> largeAndHarmless(const RuleContext &context);
Expected<Findings> nonFinite(const RuleContext &context);
Expected<Findings> upcastBf16(const RuleContext &context);
Expected<Findings> lossyFilter(const RuleContext &context);
Expected<Findings> duplicateRows(const RuleContext &context);

/// `<kind>[.<scope>]@<subject>:<places>`.
std::string findingId(const std::string &kind, const std::string &scope, const std::string &subject,
                      const std::vector<std::int64_t> &places);
/// A finding of the context's edge; `places` are its row, channel in the order of the id.
Finding findingOn(const RuleContext &context, const std::string &kind, FindingRule rule, const std::vector<std::int64_t> &places,
                  double value);
/// Shortest decimal text of a threshold.
std::string plainNumber(double value);
/// asymmetry (u+l)/(u-l) of a channel; nullopt when constant.
std::optional<double> asymmetryOf(double minimum, double maximum);
/// Lower median of values that are not negative.
double lowerMedian(std::vector<double> values);
/// The first ceil(share K) indices by value descending, index ascending, as flags.
std::vector<std::uint8_t> topFlags(const std::vector<double> &values, double share);

} // namespace planish
