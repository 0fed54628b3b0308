// Try tab: the candidates with their errors, the form of the current one, the profile before and after, the sweep.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTabWidget>
#include <QWidget>

#include "views/charts/channel_profile.h"
#include "views/models/session.h"
#include "views/panels/candidate_table.h"
#include "views/panels/compare_panel.h"
#include "views/panels/param_form.h"
#include "views/panels/sweep_panel.h"

namespace planish {

enum class TryPage { Profile, Sweep, Compare };

class TryPanel : public QWidget {
    Q_OBJECT
public:
    explicit TryPanel(Session *session, QWidget *parent = nullptr);
    void setPage(TryPage page) { m_pages->setCurrentIndex(static_cast<int>(page)); }
    SweepPanel *sweep() { return m_sweep; }
    ComparePanel *compare() { return m_compare; }
    ParamForm *form() { return m_form; }
    QString statusText() const { return m_status->text(); }

signals:
    void messaged(const QString &text);

private:
    QWidget *buildLeft();
    QWidget *buildTop();   ///< candidates, light, sentence
    QWidget *buildPages(); ///< profile and sweep
    void connectAll();
    void refresh();       ///< result or edge changed
    void showCandidate(); ///< form and specs
    void fillProfile();
    void specsEdited();
    Session *m_session;
    CandidateTable *m_table;
    ParamForm *m_form;
    QLineEdit *m_act, *m_weight;
    QLabel *m_specError, *m_title, *m_status, *m_details;
    QPushButton *m_pin, *m_add, *m_remove;
    QTabWidget *m_pages;
    ChannelProfile *m_profile;
    SweepPanel *m_sweep;
    ComparePanel *m_compare;
    QWidget *m_left = nullptr; ///< form and specs; the comparison takes their room
};

} // namespace planish
