#include "core/report/svg_chart.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/report/html_page.h"
#include "core/report/svg_parts.h"

namespace planish {

namespace {

constexpr double kRow = 19, kChartWidth = 620;

void axisBelow(SvgCanvas &canvas, const LogScale &scale, double top, double bottom, const std::string &label, double middle)
{
    for (const double tick : scale.ticks()) {
        canvas.line(scale.at(tick), top, scale.at(tick), bottom, "grid");
        canvas.text(scale.at(tick), bottom + 13, tickText(tick), "middle", "soft");
    }
    canvas.text(middle, bottom + 27, label, "middle", "soft");
}

void spread(SvgCanvas &canvas, const LogScale &x, double y, const std::optional<double> &low, const std::optional<double> &high)
{
    if (!low || !high)
        return;
    canvas.line(x.at(*low), y, x.at(*high), y, "spread");
    for (const double end : {*low, *high})
        canvas.line(x.at(end), y - 3, x.at(end), y + 3, "spread");
}

std::vector<double> valuesOf(const std::vector<CandidateMark> &candidates)
{
    std::vector<double> values;
    for (const CandidateMark &candidate : candidates) {
        if (!candidate.value)
            continue;
        values.push_back(*candidate.value);
        if (candidate.high)
            values.push_back(*candidate.high);
        if (candidate.low && *candidate.low > 0.2 * *candidate.value)
            values.push_back(*candidate.low);
    }
    return values;
}

std::string hoverOf(const CandidateMark &c)
{
    std::string text = c.name + ": " + (c.value ? fullNumber(*c.value) : std::string("not scored"));
    if (c.low && c.high)
        text += " (95 % spread " + shortNumber(*c.low) + " to " + shortNumber(*c.high) + ")";
    if (c.tie >= 0)
        text += ", tie set " + std::to_string(c.tie);
    if (c.cost)
        text += ", online " + countText(*c.cost) + " flops per token";
    return c.note.empty() ? text : text + "; " + c.note;
}

const char *classOf(const CandidateMark &c)
{
    return !c.usable ? "doth" : c.chosen ? "dotm" : "dota";
}

/// Widest label in user units; 6.1 is the mean advance of the 11 px face.
double labelWidth(const std::vector<std::string> &labels, double most)
{
    std::size_t widest = 0;
    for (const std::string &label : labels)
        widest = std::max(widest, label.size());
    return std::min(most, 16 + 6.1 * static_cast<double>(widest));
}

std::string shortened(const std::string &text, std::size_t most)
{
    return text.size() <= most ? text : text.substr(0, most - 1) + "…";
}

} // namespace

std::string beforeAfterChart(const std::vector<BeforeAfter> &rows, const std::string &axis)
{
    std::vector<double> values;
    std::vector<std::string> labels;
    for (const BeforeAfter &row : rows) {
        labels.push_back(shortened(row.label, 34));
        for (const auto &value : {row.before, row.after, row.high, row.joint}) {
            if (value)
                values.push_back(*value);
        }
        if (row.low && row.after && *row.low > 0.2 * *row.after)
            values.push_back(*row.low);
    }
    const double left = labelWidth(labels, 230), width = 860, top = 8, bottom = top + kRow * static_cast<double>(rows.size());
    SvgCanvas canvas(width, bottom + 34, "error of every edge before and after");
    const LogScale x(values, left, width - 16);
    axisBelow(canvas, x, top, bottom, axis, (left + width) / 2);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const BeforeAfter &row = rows[i];
        const double y = top + kRow * (static_cast<double>(i) + 0.5);
        canvas.text(left - 8, y + 4, labels[i], "end");
        if (row.before && row.after)
            canvas.line(x.at(*row.before), y, x.at(*row.after), y, "link");
        spread(canvas, x, y, row.low, row.high);
        if (row.before)
            canvas.circle(x.at(*row.before), y, 4, "dotb", row.label + ": identity " + fullNumber(*row.before));
        if (row.after)
            canvas.circle(x.at(*row.after), y, 4.5, "dota", row.label + ": plan " + fullNumber(*row.after));
        if (row.joint && row.after && *row.joint != *row.after)
            canvas.circle(x.at(*row.joint), y, 3, "dotm", row.label + ": joint, after all folds " + fullNumber(*row.joint));
    }
    return canvas.svg();
}

std::string candidateChart(const std::vector<CandidateMark> &candidates, const std::string &axis)
{
    std::vector<std::string> labels;
    for (const CandidateMark &candidate : candidates)
        labels.push_back(shortened(candidate.name, 30));
    const double left = labelWidth(labels, 200), top = 6, bottom = top + kRow * static_cast<double>(candidates.size());
    SvgCanvas canvas(kChartWidth, bottom + 34, "candidates with their 95 % spread");
    const LogScale x(valuesOf(candidates), left, kChartWidth - 14);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (candidates[i].tie == 0)
            canvas.rect(0, top + kRow * static_cast<double>(i), kChartWidth, kRow, "class=\"band\"");
    }
    axisBelow(canvas, x, top, bottom, axis, (left + kChartWidth) / 2);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const CandidateMark &c = candidates[i];
        const double y = top + kRow * (static_cast<double>(i) + 0.5);
        canvas.text(left - 8, y + 4, labels[i], "end", c.usable ? "" : "soft");
        if (!c.value) {
            canvas.text(left + 4, y + 4, shortened(c.note.empty() ? "not scored" : c.note, 60), "start", "soft");
            continue;
        }
        spread(canvas, x, y, c.low, c.high);
        canvas.circle(x.at(*c.value), y, c.chosen ? 5.5 : 4.2, classOf(c), hoverOf(c));
    }
    return canvas.svg();
}

std::string paretoChart(const std::vector<CandidateMark> &candidates)
{
    std::vector<const CandidateMark *> points;
    double most = 0;
    for (const CandidateMark &candidate : candidates) {
        if (candidate.value && candidate.cost && *candidate.value > 0) {
            points.push_back(&candidate);
            most = std::max(most, *candidate.cost);
        }
    }
    if (points.size() < 2 || most <= 0)
        return {};
    const double height = 250, left = 54, right = kChartWidth - 16, bottom = height - 38, top = 10;
    SvgCanvas canvas(kChartWidth, height, "error against online cost");
    const LogScale y(valuesOf(candidates), bottom, top);
    const auto x = [&](double cost) { return left + (right - left) * std::sqrt(cost / most) * 0.97; };
    for (const double tick : y.ticks()) {
        canvas.line(left, y.at(tick), right, y.at(tick), "grid");
        canvas.text(left - 6, y.at(tick) + 4, tickText(tick), "end", "soft");
    }
    for (const double share : {0.0, 0.1, 0.4, 1.0}) {
        canvas.line(x(most * share), top, x(most * share), bottom, "grid");
        canvas.text(x(most * share), bottom + 14, countText(most * share), "middle", "soft");
    }
    canvas.text((left + right) / 2, height - 8, "online flops per token (square-root axis)", "middle", "soft");
    std::ranges::stable_sort(points, {}, [](const CandidateMark *mark) { return std::pair(*mark->cost, *mark->value); });
    std::vector<std::pair<double, double>> front;
    double best = INFINITY;
    for (const CandidateMark *mark : points) {
        if (*mark->value >= best)
            continue;
        if (!front.empty())
            front.emplace_back(x(*mark->cost), front.back().second);
        best = *mark->value;
        front.emplace_back(x(*mark->cost), y.at(best));
    }
    canvas.polyline(front, "front");
    for (const CandidateMark *mark : points)
        canvas.circle(x(*mark->cost), y.at(*mark->value), mark->chosen ? 5.5 : 4.2, classOf(*mark), hoverOf(*mark));
    return canvas.svg();
}

std::vector<double> decimatedMaxima(const std::vector<double> &values, std::size_t columns)
{
    if (values.size() <= columns || columns == 0)
        return values;
    std::vector<double> maxima(columns, 0);
    for (std::size_t c = 0; c < columns; ++c) {
        const std::size_t begin = c * values.size() / columns, end = (c + 1) * values.size() / columns;
        for (std::size_t i = begin; i < end; ++i)
            maxima[c] = std::max(maxima[c], values[i]);
    }
    return maxima;
}

std::string profileChart(const std::vector<double> &before, const std::vector<double> &after)
{
    constexpr std::size_t kColumns = 280;
    const double height = 210, left = 48, right = kChartWidth - 12, bottom = height - 34, top = 10;
    const auto a = decimatedMaxima(before, kColumns), b = decimatedMaxima(after, kColumns);
    std::vector<double> all = a;
    all.insert(all.end(), b.begin(), b.end());
    SvgCanvas canvas(kChartWidth, height, "largest value of each channel before and after");
    const LogScale y(all, bottom, top);
    for (const double tick : y.ticks()) {
        canvas.line(left, y.at(tick), right, y.at(tick), "grid");
        canvas.text(left - 6, y.at(tick) + 4, tickText(tick), "end", "soft");
    }
    const auto curve = [&](const std::vector<double> &values, const char *cssClass) {
        std::vector<std::pair<double, double>> points;
        for (std::size_t i = 0; i < values.size(); ++i)
            points.emplace_back(left + (right - left) * (static_cast<double>(i) + 0.5) / static_cast<double>(values.size()),
                                y.at(values[i]));
        canvas.polyline(points, cssClass);
    };
    curve(a, "before");
    curve(b, "after");
    canvas.text(left, height - 18, "0", "middle", "soft");
    canvas.text(right, height - 18, std::to_string(before.empty() ? after.size() : before.size()), "end", "soft");
    canvas.text((left + right) / 2, height - 6, "channel; largest |x| before (grey) and after (blue)", "middle", "soft");
    return canvas.svg();
}

std::string concentrationChart(const std::vector<double> &before, const std::vector<double> &after)
{
    const double height = 210, left = 48, right = kChartWidth - 12, bottom = height - 34, top = 10;
    const auto channels = static_cast<double>(std::max(before.size(), after.size()));
    if (channels < 2)
        return {};
    SvgCanvas canvas(kChartWidth, height, "share of the energy in the largest channels");
    const auto x = [&](double rank) { return left + (right - left) * std::log(rank) / std::log(channels); };
    const auto y = [&](double share) { return bottom + (top - bottom) * std::clamp(share, 0.0, 1.0); };
    for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
        canvas.line(left, y(share), right, y(share), "grid");
        canvas.text(left - 6, y(share) + 4, percent(share), "end", "soft");
    }
    for (double rank = 1; rank <= channels; rank *= 10)
        canvas.text(x(rank), bottom + 14, tickText(rank), "middle", "soft");
    const auto curve = [&](const std::vector<double> &shares, const char *cssClass) {
        std::vector<std::pair<double, double>> points;
        double next = 1;
        for (std::size_t i = 0; i < shares.size(); ++i) {
            const auto rank = static_cast<double>(i + 1);
            if (rank + 0.5 < next && i + 1 != shares.size())
                continue;
            points.emplace_back(x(rank), y(shares[i]));
            next = rank * 1.03;
        }
        canvas.polyline(points, cssClass);
    };
    curve(before, "before");
    curve(after, "after");
    canvas.text((left + right) / 2, height - 6, "number of largest channels; share of the energy they hold", "middle", "soft");
    return canvas.svg();
}

std::string viridis(double t)
{
    static constexpr std::array<std::array<int, 3>, 9> kStops{{{68, 1, 84},
                                                               {71, 44, 122},
                                                               {59, 81, 139},
                                                               {44, 113, 142},
                                                               {33, 144, 141},
                                                               {39, 173, 129},
                                                               {92, 200, 99},
                                                               {170, 220, 50},
                                                               {253, 231, 37}}};
    const double place = std::clamp(std::isfinite(t) ? t : 0.0, 0.0, 1.0) * (kStops.size() - 1);
    const auto index = std::min(static_cast<std::size_t>(place), kStops.size() - 2);
    const double part = place - static_cast<double>(index);
    char text[8];
    int rgb[3];
    for (std::size_t c = 0; c < 3; ++c)
        rgb[c] = static_cast<int>(std::lround(kStops[index][c] + part * (kStops[index + 1][c] - kStops[index][c])));
    std::snprintf(text, sizeof text, "#%02x%02x%02x", rgb[0] & 255, rgb[1] & 255, rgb[2] & 255);
    return text;
}

std::string heatMap(const std::vector<std::string> &columns, const std::vector<std::string> &rows,
                    const std::vector<HeatCell> &cells, const std::string &measure)
{
    double low = INFINITY, high = 0;
    for (const HeatCell &cell : cells) {
        if (cell.value && *cell.value > 0) {
            low = std::min(low, *cell.value);
            high = std::max(high, *cell.value);
        }
    }
    const double left = labelWidth(rows, 160), width = 860, side = 26;
    const double step = columns.empty() ? side : std::min(60.0, (width - left - 10) / static_cast<double>(columns.size()));
    const double bottom = 8 + side * static_cast<double>(rows.size());
    SvgCanvas canvas(width, bottom + 58, measure + " by depth and site");
    for (std::size_t r = 0; r < rows.size(); ++r)
        canvas.text(left - 8, 8 + side * (static_cast<double>(r) + 0.5) + 4, rows[r], "end");
    const std::size_t skip = step < 16 ? 5 : 1;
    for (std::size_t c = 0; c < columns.size(); c += skip)
        canvas.text(left + step * (static_cast<double>(c) + 0.5), bottom + 14, columns[c], "middle", "soft");
    const auto shade = [&](double value) { return high > low ? std::log(value / low) / std::log(high / low) : 0.5; };
    for (const HeatCell &cell : cells) {
        const std::string fill = cell.value && *cell.value > 0 ? viridis(shade(*cell.value)) : std::string("none");
        canvas.rect(left + step * static_cast<double>(cell.column) + 0.5, 8.5 + side * static_cast<double>(cell.row), step - 1,
                    side - 1, "rx=\"2\" fill=\"" + fill + "\"" + (fill == "none" ? " class=\"axis\"" : ""), cell.hover);
    }
    if (high > 0) {
        for (int i = 0; i < 60; ++i)
            canvas.rect(left + 3 * i, bottom + 26, 3.2, 9, "fill=\"" + viridis(i / 59.0) + "\"");
        canvas.text(left, bottom + 47, shortNumber(low), "start", "soft");
        canvas.text(left + 180, bottom + 47, shortNumber(high), "end", "soft");
        canvas.text(left + 192, bottom + 35, measure + ", logarithmic", "start", "soft");
    }
    return canvas.svg();
}

} // namespace planish
