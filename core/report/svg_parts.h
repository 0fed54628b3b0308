// Pieces every chart is made of: a canvas that collects marks, and axes that map numbers to places and draw their grid.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace planish {

/// Collects SVG elements; coordinates in user units, written with two decimals.
class SvgCanvas {
public:
    SvgCanvas(double width, double height, std::string_view title);
    void line(double x1, double y1, double x2, double y2, std::string_view cssClass);
    void rect(double x, double y, double width, double height, std::string_view attributes, std::string_view hover = {});
    void circle(double x, double y, double radius, std::string_view cssClass, std::string_view hover = {});
    void polyline(const std::vector<std::pair<double, double>> &points, std::string_view cssClass);
    /// anchor: start, middle or end.
    void text(double x, double y, std::string_view text, std::string_view anchor = "start", std::string_view cssClass = {});
    std::string svg() const { return m_svg + "</svg>"; }

private:
    std::string m_svg;
};

/// A logarithmic scale over decades that holds all positive values given; degenerate input gives one decade.
class LogScale {
public:
    LogScale(const std::vector<double> &values, double from, double to);
    double at(double value) const;     ///< clamped to the ends
    std::vector<double> ticks() const; ///< powers of ten, with 2 and 5 between when few
    double low() const { return m_low; }

private:
    double m_low = 1, m_high = 10, m_from = 0, m_to = 1;
};

/// Tick label: 0.001 … 100 as they stand, else 1e-5.
std::string tickText(double value);

} // namespace planish
