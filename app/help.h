// Help pages: shortcuts, what each number means, the methods with their parameters (from the
// method table), and the failure lab (from resources/failure_lab.json).
#pragma once

#include <QString>

class QWidget;

namespace planish {

enum class HelpPage { Shortcuts, Numbers, Methods, FailureLab };

QString helpHtml(HelpPage page);
/// Opens a page in a window of its own and returns that window.
QWidget *showHelp(QWidget *parent, HelpPage page);

} // namespace planish
