#include "core/report/report.h"

#include "core/report/report_sections.h"

namespace planish {

std::string reportHtml(const ReportContent &content)
{
    std::vector<HtmlSection> sections;
    for (const auto section :
         {resultSection, provenanceSection, mapSection, offenderSection, findingsSection, planSection, equivalenceSection,
          edgesSection, ledgerSection, legalitySection, failureSection, commandSection}) {
        HtmlSection made = section(content);
        if (!made.html.empty())
            sections.push_back(std::move(made));
    }
    return htmlPage(content.title, leadHtml(content), sections,
                    content.data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

} // namespace planish
