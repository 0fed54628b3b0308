// Help pages: shortcuts, what each number means, and the methods with their parameters (from the method table).
#pragma once

#include <QString>

class QWidget;

namespace planish {

enum class HelpPage { Shortcuts, Numbers, Methods };

QString helpHtml(HelpPage page);
/// Opens a page in a window of its own and returns that window.
QWidget *showHelp(QWidget *parent, HelpPage page);

} // namespace planish
