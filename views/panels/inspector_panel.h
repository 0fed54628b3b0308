// Right dock: what is selected, in numbers. Which page is shown follows the tab in the centre.
#pragma once

#include <QTextBrowser>
#include <QWidget>

#include "views/models/session.h"

namespace planish {

enum class InspectorPage { Edge, Candidate, Plan };

class InspectorPanel : public QWidget {
    Q_OBJECT
public:
    explicit InspectorPanel(Session *session, QWidget *parent = nullptr);
    void setPage(InspectorPage page);
    void refresh();

private:
    QString html() const;
    Session *m_session;
    QTextBrowser *m_text;
    InspectorPage m_page = InspectorPage::Edge;
};

} // namespace planish
