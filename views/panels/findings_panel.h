// Findings of the selected edge as a table; a click marks its channel and token everywhere.
#pragma once

#include <QTableView>
#include <QWidget>

#include "views/models/findings_model.h"
#include "views/models/session.h"

namespace planish {

class FindingsPanel : public QWidget {
    Q_OBJECT
public:
    explicit FindingsPanel(Session *session, QWidget *parent = nullptr);
    const FindingsModel *model() const { return m_model; }

private:
    void refresh();
    Session *m_session;
    FindingsModel *m_model;
    QTableView *m_table;
};

} // namespace planish
