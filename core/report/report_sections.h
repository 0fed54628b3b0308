// The sections of a report, one function each; empty `html` means the section has nothing to say and is left out.
#pragma once

#include "core/report/html_page.h"
#include "core/report/report.h"

namespace planish {

std::string leadHtml(const ReportContent &content); ///< sentence and cards on top
HtmlSection provenanceSection(const ReportContent &content);
HtmlSection mapSection(const ReportContent &content);
HtmlSection offenderSection(const ReportContent &content);
HtmlSection findingsSection(const ReportContent &content);

HtmlSection resultSection(const ReportContent &content);
HtmlSection planSection(const ReportContent &content);
HtmlSection equivalenceSection(const ReportContent &content);
HtmlSection ledgerSection(const ReportContent &content);
HtmlSection legalitySection(const ReportContent &content);
HtmlSection edgesSection(const ReportContent &content);

HtmlSection failureSection(const ReportContent &content);
HtmlSection commandSection(const ReportContent &content);

} // namespace planish
