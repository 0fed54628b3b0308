// The sentences of the Plan tab, as HTML: what plan, save, apply and verify did, and why something was refused.
#pragma once

#include <QString>

#include "core/plan/plan.h"

namespace planish {

QString errorHtml(const Error &error);
QString plannedHtml(const Plan &plan);
QString savedHtml(const std::vector<std::string> &files);
QString appliedHtml(const ApplyResult &result);
QString verifiedHtml(const VerifyResult &result);
/// "legal", or the first refusal of the assignment as a sentence.
QString legalitySentence(const Assignment &assignment);
QString legalitySentence(const Placement &placement);

} // namespace planish
