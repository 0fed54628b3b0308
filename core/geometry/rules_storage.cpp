// Rules about how the values are stored: nonfinite, upcast_bf16, lossy_filter.
#include <algorithm>

#include "core/geometry/finding_rules.h"

namespace planish {

Expected<Findings> nonFinite(const RuleContext &context)
{
    const Statistics &s = context.statistics;
    if (s.nonFinite == 0)
        return Findings{};
    const FindingRule rule{"NaN or Inf elements > 0", "nonfinite", ">", "", 0.0};
    Finding finding =
        findingOn(context, "nonfinite", rule, {s.firstNonFiniteRow, s.firstNonFiniteChannel}, static_cast<double>(s.nonFinite));
    finding.where = {{"row", s.firstNonFiniteRow}, {"channel", s.firstNonFiniteChannel}};
    finding.sharing = "tensor";
    // The first place stays the first in any draw that holds its row.
    finding.stability = context.shareWithRow(s.firstNonFiniteRow);
    return Findings{finding};
}

Expected<Findings> upcastBf16(const RuleContext &context)
{
    if (!context.dumpEdge.upcastBf16)
        return Findings{};
    const FindingRule rule{"float32 values whose low 16 bits are all zero", "upcast_bf16", ">", "", 0.0};
    const auto elements = static_cast<double>(context.dumpEdge.rows) * static_cast<double>(context.dumpEdge.channels);
    Finding finding = findingOn(context, "upcast_bf16", rule, {0, 0}, elements);
    finding.where = {{"row", 0}, {"channel", 0}};
    finding.stability = context.draws.share([](std::size_t) { return true; });
    return Findings{finding};
}

// The readers say so in the notes of the dump, naming the path.
Expected<Findings> lossyFilter(const RuleContext &context)
{
    const auto &notes = context.opened.dump->info().notes;
    const auto names = [&](const std::string &note) {
        return note.find("lossy") != std::string::npos && !context.dumpEdge.path.empty() &&
               note.find(context.dumpEdge.path) != std::string::npos;
    };
    if (std::none_of(notes.begin(), notes.end(), names))
        return Findings{};
    const FindingRule rule{"stored through a lossy filter", "lossy_filter", ">", "", 0.0};
    Finding finding = findingOn(context, "lossy_filter", rule, {0, 0}, 1.0);
    finding.where = {{"row", 0}, {"channel", 0}};
    finding.stability = context.draws.share([](std::size_t) { return true; });
    return Findings{finding};
}

} // namespace planish
