#include "core/report/svg_parts.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/report/html_page.h"

namespace planish {

namespace {

std::string number(double value)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", std::isfinite(value) ? value : 0.0);
    return text;
}

std::string hoverOf(std::string_view hover)
{
    return hover.empty() ? std::string("/>") : "><title>" + escaped(hover) + "</title>";
}

} // namespace

SvgCanvas::SvgCanvas(double width, double height, std::string_view title)
    : m_svg("<svg viewBox=\"0 0 " + number(width) + " " + number(height) + "\" role=\"img\" aria-label=\"" + escaped(title) +
            "\" xmlns=\"http://www.w3.org/2000/svg\">")
{
}

void SvgCanvas::line(double x1, double y1, double x2, double y2, std::string_view cssClass)
{
    m_svg += "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" + number(y2) +
             "\" class=\"" + std::string(cssClass) + "\"/>";
}

void SvgCanvas::rect(double x, double y, double width, double height, std::string_view attributes, std::string_view hover)
{
    m_svg += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) + "\" height=\"" + number(height) +
             "\" " + std::string(attributes) + hoverOf(hover) + (hover.empty() ? "" : "</rect>");
}

void SvgCanvas::circle(double x, double y, double radius, std::string_view cssClass, std::string_view hover)
{
    m_svg += "<circle cx=\"" + number(x) + "\" cy=\"" + number(y) + "\" r=\"" + number(radius) + "\" class=\"" +
             std::string(cssClass) + "\"" + hoverOf(hover) + (hover.empty() ? "" : "</circle>");
}

void SvgCanvas::polyline(const std::vector<std::pair<double, double>> &points, std::string_view cssClass)
{
    if (points.size() < 2)
        return;
    m_svg += "<polyline class=\"" + std::string(cssClass) + "\" points=\"";
    for (const auto &[x, y] : points)
        m_svg += number(x) + "," + number(y) + " ";
    m_svg += "\"/>";
}

void SvgCanvas::text(double x, double y, std::string_view text, std::string_view anchor, std::string_view cssClass)
{
    m_svg += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + std::string(anchor) + "\"";
    if (!cssClass.empty())
        m_svg += " class=\"" + std::string(cssClass) + "\"";
    m_svg += ">" + escaped(text) + "</text>";
}

LogScale::LogScale(const std::vector<double> &values, double from, double to) : m_from(from), m_to(to)
{
    double low = INFINITY, high = 0;
    for (const double value : values) {
        if (value > 0 && std::isfinite(value)) {
            low = std::min(low, value);
            high = std::max(high, value);
        }
    }
    if (!(high > 0))
        return;
    const double step = std::log10(high / low) > 1.5 ? 1.0 : 0.5;
    m_low = std::pow(10, std::floor(std::log10(low * 0.93) / step) * step);
    m_high = std::pow(10, std::ceil(std::log10(high * 1.07) / step) * step);
    if (m_high / m_low < 2)
        m_high = m_low * 10;
}

double LogScale::at(double value) const
{
    const double clamped = std::clamp(value > 0 ? value : m_low, m_low, m_high);
    return m_from + (m_to - m_from) * std::log(clamped / m_low) / std::log(m_high / m_low);
}

std::vector<double> LogScale::ticks() const
{
    std::vector<double> all;
    const double decades = std::log10(m_high / m_low);
    const int skip = std::max(1, static_cast<int>(std::ceil(decades / 7)));
    for (int power = static_cast<int>(std::floor(std::log10(m_low) + 1e-9));
         power <= static_cast<int>(std::ceil(std::log10(m_high) - 1e-9)); power += skip) {
        for (const double factor : {1.0, 2.0, 5.0}) {
            const double tick = factor * std::pow(10, power);
            if ((factor == 1 || decades <= 2.1) && tick >= m_low * (1 - 1e-9) && tick <= m_high * (1 + 1e-9))
                all.push_back(tick);
        }
    }
    return all;
}

std::string tickText(double value)
{
    char text[32];
    if (value != 0 && (std::abs(value) < 1e-4 || std::abs(value) >= 1e5))
        std::snprintf(text, sizeof text, "%.0e", value);
    else
        std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

} // namespace planish
