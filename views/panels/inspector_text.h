// What the inspector says about the selected edge, channel, token, candidate and plan row, as HTML tables.
#pragma once

#include <QString>

#include "views/models/session.h"

namespace planish {

QString edgeHtml(const Opened &opened, const Edge &edge, const EdgeAnalysis *analysis);
QString channelHtml(const Edge &edge, const EdgeAnalysis &analysis, std::int64_t channel, const Evaluation *after);
QString tokenHtml(const Opened &opened, const Edge &edge, const EdgeAnalysis &analysis, std::int64_t row);
QString evaluationHtml(const Evaluation &evaluation);
QString assignmentHtml(const Assignment &assignment);
/// Token text of a file row of an edge, with request and position: "12 'the' (request 0, position 12)".
QString tokenLabel(const Opened &opened, const DumpEdge &edge, std::int64_t row);
/// Short form for axes: "12 the".
QString tokenAxisLabel(const Opened &opened, const DumpEdge &edge, std::int64_t row);

} // namespace planish
