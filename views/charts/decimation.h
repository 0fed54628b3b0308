// Fewer points for the same picture: an envelope that keeps every maximum, and points a log axis can show.
#pragma once

#include <cstddef>
#include <vector>

#include <QList>
#include <QPointF>

namespace planish {

/// At most `budget` points; each bucket keeps its smallest and largest value at their own places.
QList<QPointF> envelope(const QList<QPointF> &points, std::size_t budget = 4096);
/// Points a logarithmic axis can show: finite and above zero. One zero would blank the whole series.
QList<QPointF> positiveOnly(const QList<QPointF> &points);
QList<QPointF> finiteOnly(const QList<QPointF> &points);
/// x = index, y = value.
QList<QPointF> pointsOf(const std::vector<double> &values);

} // namespace planish
