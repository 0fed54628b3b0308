// The form of one candidate: a method combo and one control per parameter row, for every member of its chain, and the seed. Built
// from the method table; it computes nothing and knows no method by name.
#pragma once

#include <functional>
#include <vector>

#include <QSpinBox>
#include <QWidget>

#include "core/methods/method_table.h"
#include "views/models/session.h"

class QFormLayout;
class QVBoxLayout;

namespace planish {

class ParamForm : public QWidget {
    Q_OBJECT
public:
    explicit ParamForm(QWidget *parent = nullptr);
    /// Shows a candidate. The same methods as before: only values are set, so that a held slider survives.
    void setCandidate(const Candidate &candidate);

signals:
    void edited(const planish::Candidate &candidate, planish::EditPhase phase);

private:
    /// One control on screen: how to show a value typed for a parameter.
    struct Field {
        std::size_t member = 0;
        const ParamRow *row = nullptr;
        std::function<void(const std::string &)> show;
    };
    void rebuild();
    void addMember(std::size_t member);
    void addField(QFormLayout *form, std::size_t member, const ParamRow &row);
    QWidget *realControl(std::size_t member, const ParamRow &row, Field &field);
    QWidget *integerControl(std::size_t member, const ParamRow &row, Field &field);
    QWidget *wordControl(std::size_t member, const ParamRow &row, Field &field);
    QWidget *textControl(std::size_t member, const ParamRow &row, Field &field);
    void change(std::size_t member, const std::string &parameter, const std::string &value, EditPhase phase);
    void changeMethod(std::size_t member, const std::string &key);
    void showValues();

    Candidate m_candidate;
    std::vector<std::string> m_built; ///< methods the controls stand for
    std::vector<Field> m_fields;
    QVBoxLayout *m_layout;
    QWidget *m_content = nullptr;
    QSpinBox *m_seed = nullptr;
};

} // namespace planish
