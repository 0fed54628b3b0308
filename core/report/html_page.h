// HTML text: escaping, numbers, tables and the shell of a page that needs no network and no script. What a page says is report.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planish {

/// Text made safe between tags and inside quoted attributes; control characters and bytes that are no UTF-8 become \xNN.
std::string escaped(std::string_view text);

/// A number for people: four significant digits, "1.2e-17" when small. Non-finite numbers are a dash.
std::string shortNumber(double value);
std::string shortNumber(const std::optional<double> &value);
/// All 17 digits, for hover texts and copying.
std::string fullNumber(double value);
std::string percent(double share);
/// "12,345" without decimals.
std::string countText(double value);
/// A number cell: short text, full digits on hover.
std::string numberCell(double value);
std::string numberCell(const std::optional<double> &value);

/// Rows of finished HTML cells; the first column is a row heading. `numeric` columns are right aligned.
class HtmlTable {
public:
    explicit HtmlTable(std::vector<std::string> headings, std::string caption = {});
    /// `rowClass` marks a row (chosen, refused); cells are HTML, use `escaped` on text.
    void add(const std::vector<std::string> &cells, std::string_view rowClass = {});
    bool empty() const { return m_rows.empty(); }
    std::string html() const;

private:
    std::vector<std::string> m_headings;
    std::string m_caption, m_rows;
    std::vector<char> m_numeric; ///< per column: every cell so far shows a number
};

struct HtmlSection {
    std::string id, title, html;
    std::string claim; ///< "measured by us", "derived", … (failures.md "Claim labels"), empty = none
};

/// The whole document: style sheet, contents, sections, and `data` as an inert JSON block that other programs can read.
std::string htmlPage(const std::string &title, const std::string &lead, const std::vector<HtmlSection> &sections,
                     const std::string &dataJson);

/// A command line as a copyable block.
std::string commandBlock(const std::vector<std::string> &lines);
/// A list of sentences, escaped; empty for none.
std::string sentenceList(const std::vector<std::string> &sentences);

} // namespace planish
