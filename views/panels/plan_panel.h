// Plan tab: settings, one row per edge, and the four actions plan, save, apply, verify with what they said.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QLineEdit>
#include <QPushButton>
#include <QTableView>
#include <QTextBrowser>
#include <QWidget>

#include "views/models/plan_model.h"
#include "views/models/session.h"

namespace planish {

class PlanPanel : public QWidget {
    Q_OBJECT
public:
    explicit PlanPanel(Session *session, QWidget *parent = nullptr);
    PlanSettings settings() const;
    void make();
    /// Key of a preset, or empty for the candidates of the Try tab.
    void choosePreset(const QString &key);
    /// Fills the form of the rule; limits count for `within` only, an empty one is no limit. `exclude`: edge globs.
    void setRule(Choose rule, const QString &flops, const QString &bits, const QString &exclude);
    const PlanModel *model() const { return m_model; }

private:
    void fillForm();
    QWidget *buildSettings();
    QWidget *buildActions();
    void connectAll();
    void refresh();
    void showSelected();
    void save();
    void apply();
    void verify();
    QString askCheckpoint(const QString &title);
    Session *m_session;
    PlanModel *m_model;
    QTableView *m_table;
    QComboBox *m_preset, *m_effort, *m_choose;
    QLineEdit *m_flops, *m_bits, *m_exclude;
    QCheckBox *m_streams, *m_online, *m_change, *m_joint;
    QPushButton *m_make, *m_save, *m_apply, *m_verify, *m_unpin;
    QTextBrowser *m_report;
};

} // namespace planish
