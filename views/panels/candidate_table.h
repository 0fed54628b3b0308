// The candidates as a table with a whisker per row: point and 95 % spread of the output error on one shared log scale, status as
// a dot.
#pragma once

#include <QTableView>

#include "views/models/session.h"

namespace planish {

class CandidateTable : public QTableView {
    Q_OBJECT
public:
    explicit CandidateTable(Session *session, QWidget *parent = nullptr);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {200, sizeHint().height()}; }

protected:
    void resizeEvent(QResizeEvent *event) override;

private:
    void fitColumns();
    Session *m_session;
};

} // namespace planish
