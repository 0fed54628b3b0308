// Sweep of one parameter of the current candidate on the current edge; a click on the curve adopts the value.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QWidget>

#include "views/charts/sweep_chart.h"
#include "views/models/session.h"

namespace planish {

/// A parameter that can be swept and the values that are tried.
struct SweepChoice {
    std::string parameter; ///< as `sweep --param` takes it
    std::vector<double> values;
};
/// Numeric parameters of the chain with a bounded range (at most 21 values each), then the seed.
std::vector<SweepChoice> sweepChoices(const Candidate &candidate);

class SweepPanel : public QWidget {
    Q_OBJECT
public:
    explicit SweepPanel(Session *session, QWidget *parent = nullptr);
    void start(); ///< runs the chosen sweep
    const SweepChart *chart() const { return m_chart; }

private:
    void fillChoices();
    void refresh();
    Session *m_session;
    QComboBox *m_parameter;
    QPushButton *m_run, *m_adopt;
    QLabel *m_text;
    SweepChart *m_chart;
    std::vector<SweepChoice> m_choices;
};

} // namespace planish
