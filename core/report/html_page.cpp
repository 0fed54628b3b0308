#include "core/report/html_page.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/io/printable.h"
#include "core/report/page_style.h"

namespace planish {

namespace {

std::string formatted(const char *format, double value)
{
    char text[48];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

constexpr const char *kDash = "–";

/// JSON inside <script>: no tag can open or close in it.
std::string inertJson(const std::string &json)
{
    std::string out;
    out.reserve(json.size());
    for (const char c : json) {
        if (c == '<')
            out += "\\u003c";
        else if (c == '>')
            out += "\\u003e";
        else if (c == '&')
            out += "\\u0026";
        else
            out += c;
    }
    return out;
}

} // namespace

std::string escaped(std::string_view text)
{
    std::string out;
    for (const char c : printable(text)) {
        switch (c) {
        case '&':
            out += "&amp;";
            break;
        case '<':
            out += "&lt;";
            break;
        case '>':
            out += "&gt;";
            break;
        case '"':
            out += "&quot;";
            break;
        case '\'':
            out += "&#39;";
            break;
        default:
            out += c;
        }
    }
    return out;
}

std::string shortNumber(double value)
{
    if (!std::isfinite(value))
        return kDash;
    const double size = std::abs(value);
    if (size != 0 && (size < 1e-3 || size >= 1e6))
        return formatted("%.2e", value);
    return formatted("%.4g", value);
}

std::string shortNumber(const std::optional<double> &value)
{
    return value ? shortNumber(*value) : kDash;
}

std::string fullNumber(double value)
{
    return std::isfinite(value) ? formatted("%.17g", value) : kDash;
}

std::string percent(double share)
{
    return std::isfinite(share) ? formatted("%.3g", 100 * share) + " %" : kDash;
}

std::string countText(double value)
{
    if (!std::isfinite(value))
        return kDash;
    std::string digits = formatted("%.0f", std::abs(value));
    for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(static_cast<std::size_t>(at), ",");
    return (value < 0 ? "-" : "") + digits;
}

std::string numberCell(double value)
{
    return "<span title=\"" + fullNumber(value) + "\">" + shortNumber(value) + "</span>";
}

std::string numberCell(const std::optional<double> &value)
{
    return value ? numberCell(*value) : kDash;
}

namespace {

/// What a cell shows first decides its side: numbers right, words left.
bool showsNumber(const std::string &cell)
{
    std::size_t at = 0;
    while (at < cell.size() && cell[at] == '<')
        at = cell.find('>', at) == std::string::npos ? cell.size() : cell.find('>', at) + 1;
    return at < cell.size() && ((cell[at] >= '0' && cell[at] <= '9') || cell[at] == '-' || cell.compare(at, 3, kDash) == 0);
}

} // namespace

HtmlTable::HtmlTable(std::vector<std::string> headings, std::string caption)
    : m_headings(std::move(headings)), m_caption(std::move(caption))
{
}

void HtmlTable::add(const std::vector<std::string> &cells, std::string_view rowClass)
{
    m_rows += rowClass.empty() ? "<tr>" : "<tr class=\"" + std::string(rowClass) + "\">";
    m_numeric.resize(std::max(m_numeric.size(), cells.size()), 1);
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const bool number = i > 0 && showsNumber(cells[i]);
        m_numeric[i] = m_numeric[i] && number;
        m_rows +=
            i == 0 ? "<th scope=\"row\">" + cells[i] + "</th>" : (number ? "<td class=\"n\">" : "<td>") + cells[i] + "</td>";
    }
    m_rows += "</tr>\n";
}

std::string HtmlTable::html() const
{
    std::string html = "<div class=\"wide\"><table>";
    if (!m_caption.empty())
        html += "<caption>" + escaped(m_caption) + "</caption>";
    html += "<thead><tr>";
    for (std::size_t i = 0; i < m_headings.size(); ++i)
        html += (i < m_numeric.size() && m_numeric[i] ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">") +
                escaped(m_headings[i]) + "</th>";
    return html + "</tr></thead><tbody>\n" + m_rows + "</tbody></table></div>\n";
}

std::string commandBlock(const std::vector<std::string> &lines)
{
    std::string html = "<pre class=\"cli\">";
    for (const std::string &line : lines)
        html += escaped(line) + "\n";
    return html + "</pre>\n";
}

std::string sentenceList(const std::vector<std::string> &sentences)
{
    if (sentences.empty())
        return {};
    std::string html = "<ul>";
    for (const std::string &sentence : sentences)
        html += "<li>" + escaped(sentence) + "</li>";
    return html + "</ul>\n";
}

std::string htmlPage(const std::string &title, const std::string &lead, const std::vector<HtmlSection> &sections,
                     const std::string &dataJson)
{
    std::string html = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
                       escaped(title) + "</title>\n<style>" + std::string(kPageStyle) + "</style></head>\n<body>\n<nav><ol>";
    for (const HtmlSection &section : sections)
        html += "<li><a href=\"#" + section.id + "\">" + escaped(section.title) + "</a></li>";
    html += "</ol></nav>\n<main>\n<header><h1>" + escaped(title) + "</h1>\n" + lead + "</header>\n";
    for (const HtmlSection &section : sections) {
        html += "<section id=\"" + section.id + "\"><h2>" + escaped(section.title);
        if (!section.claim.empty())
            html += " <small class=\"claim\">" + escaped(section.claim) + "</small>";
        html += "</h2>\n" + section.html + "</section>\n";
    }
    html +=
        "</main>\n<script type=\"application/json\" id=\"planish-data\">" + inertJson(dataJson) + "</script>\n</body></html>\n";
    return html;
}

} // namespace planish
