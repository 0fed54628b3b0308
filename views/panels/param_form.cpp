#include "views/panels/param_form.h"

#include <algorithm>
#include <cmath>

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QGroupBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSlider>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/models/candidate_text.h"
#include "views/models/number_text.h"

namespace planish {

namespace {

constexpr int kFreeSteps = 100; // slider positions of a parameter whose row names no step

int sliderSteps(const ParamRow &row)
{
    const double steps = row.step > 0 ? (row.max - row.min) / row.step : kFreeSteps;
    return static_cast<int>(std::clamp(std::round(steps), 1.0, 1000.0));
}

std::string numberText(double value)
{
    return QString::number(value, 'g', 10).toStdString();
}

} // namespace

ParamForm::ParamForm(QWidget *parent) : QWidget(parent), m_layout(new QVBoxLayout(this))
{
    m_layout->setContentsMargins(0, 0, 0, 0);
}

void ParamForm::setCandidate(const Candidate &candidate)
{
    m_candidate = candidate;
    std::vector<std::string> methods;
    std::ranges::transform(candidate.chain, std::back_inserter(methods), [](const ChainMember &m) { return m.method; });
    if (methods != m_built) {
        m_built = methods;
        rebuild();
    }
    showValues();
}

void ParamForm::showValues()
{
    for (const Field &field : m_fields) {
        const std::string typed = valueOf(m_candidate.chain[field.member], field.row->name);
        field.show(typed.empty() ? field.row->defaultValue : typed);
    }
    const QSignalBlocker block(m_seed);
    m_seed->setValue(static_cast<int>(m_candidate.seed));
}

void ParamForm::rebuild()
{
    m_fields.clear();
    if (m_content != nullptr) {
        m_content->hide();
        m_content->deleteLater();
    }
    m_content = new QWidget;
    auto *column = new QVBoxLayout(m_content);
    column->setContentsMargins(0, 0, 0, 0);
    for (std::size_t i = 0; i < m_candidate.chain.size(); ++i) {
        addMember(i);
    }
    auto *row = new QHBoxLayout;
    auto *more = new QPushButton(QStringLiteral("Add to chain"));
    more->setToolTip(QStringLiteral("Append a method that works on the coordinates this chain leaves"));
    connect(more, &QPushButton::clicked, this, [this] {
        Candidate next = m_candidate;
        next.chain.push_back({"hadamard", {}});
        next.selectedOn.clear();
        emit edited(next, EditPhase::Settled);
    });
    m_seed = new QSpinBox;
    m_seed->setRange(0, 1000000);
    m_seed->setAccessibleName(QStringLiteral("Seed"));
    connect(m_seed, &QSpinBox::valueChanged, this, [this](int value) {
        m_candidate.seed = static_cast<std::uint64_t>(value);
        m_candidate.selectedOn.clear();
        emit edited(m_candidate, EditPhase::Settled);
    });
    row->addWidget(more);
    row->addStretch();
    row->addWidget(new QLabel(QStringLiteral("seed")));
    row->addWidget(m_seed);
    column->addLayout(row);
    column->addStretch();
    m_layout->addWidget(m_content);
}

void ParamForm::addMember(std::size_t member)
{
    const std::string &key = m_candidate.chain[member].method;
    const MethodRow *row = findMethod(key);
    auto *box = new QGroupBox;
    auto *form = new QFormLayout(box);
    form->setContentsMargins(6, 6, 6, 6);
    form->setRowWrapPolicy(QFormLayout::WrapLongRows);
    auto *combo = new QComboBox;
    for (const MethodRow &method : methodTable()) {
        combo->addItem(toQString(method.label.empty() ? method.key : method.label), toQString(method.key));
        combo->setItemData(combo->count() - 1, toQString(method.source), Qt::ToolTipRole);
    }
    combo->setCurrentIndex(combo->findData(toQString(key)));
    combo->setAccessibleName(QStringLiteral("Method"));
    combo->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    combo->setMinimumContentsLength(14);
    connect(combo, &QComboBox::activated, this,
            [this, member, combo] { changeMethod(member, combo->currentData().toString().toStdString()); });
    auto *head = new QHBoxLayout;
    head->addWidget(combo, 1);
    if (m_candidate.chain.size() > 1) {
        auto *remove = new QToolButton;
        remove->setText(QStringLiteral("×"));
        remove->setToolTip(QStringLiteral("Remove from the chain"));
        connect(remove, &QToolButton::clicked, this, [this, member] {
            Candidate next = m_candidate;
            next.chain.erase(next.chain.begin() + static_cast<std::ptrdiff_t>(member));
            next.selectedOn.clear();
            emit edited(next, EditPhase::Settled);
        });
        head->addWidget(remove);
    }
    form->addRow(head);
    if (row == nullptr) {
        form->addRow(new QLabel(QStringLiteral("%1 is not part of this build.").arg(toQString(key))));
    } else {
        if (!row->source.empty()) {
            auto *source = new QLabel(toQString(row->source));
            source->setWordWrap(true);
            source->setEnabled(false);
            form->addRow(source);
        }
        for (const ParamRow &param : row->params) {
            addField(form, member, param);
        }
    }
    qobject_cast<QVBoxLayout *>(m_content->layout())->addWidget(box);
}

void ParamForm::addField(QFormLayout *form, std::size_t member, const ParamRow &row)
{
    Field field{member, &row, {}};
    QWidget *control = nullptr;
    if (row.type == ParamType::Enum) {
        control = wordControl(member, row, field);
    } else if (row.type == ParamType::Real && row.values.empty() && std::isfinite(row.max - row.min) && row.max > row.min) {
        control = realControl(member, row, field);
    } else if (row.type == ParamType::Integer && row.values.empty()) {
        control = integerControl(member, row, field);
    } else {
        control = textControl(member, row, field);
    }
    control->setToolTip(toQString(row.help));
    control->setAccessibleName(toQString(row.name));
    auto *label = new QLabel(toQString(row.name));
    label->setToolTip(toQString(row.help));
    form->addRow(label, control);
    m_fields.push_back(std::move(field));
}

QWidget *ParamForm::realControl(std::size_t member, const ParamRow &row, Field &field)
{
    auto *box = new QWidget;
    auto *layout = new QHBoxLayout(box);
    layout->setContentsMargins(0, 0, 0, 0);
    auto *slider = new QSlider(Qt::Horizontal);
    slider->setObjectName(toQString("slider:" + row.name));
    slider->setRange(0, sliderSteps(row));
    slider->setAccessibleName(toQString(row.name));
    slider->setMinimumWidth(80);
    auto *spin = new QDoubleSpinBox;
    spin->setDecimals(row.max - row.min <= 0.01 ? 6 : 4);
    spin->setRange(row.min, row.max);
    spin->setSingleStep(row.step > 0 ? row.step : (row.max - row.min) / kFreeSteps);
    spin->setKeyboardTracking(false);
    spin->setAccessibleName(toQString(row.name));
    layout->addWidget(slider, 1);
    layout->addWidget(spin);
    const auto valueAt = [&row, steps = sliderSteps(row)](int position) {
        return row.min + (row.max - row.min) * position / steps;
    };
    connect(slider, &QSlider::valueChanged, this, [this, slider, spin, member, &row, valueAt](int position) {
        const double value = valueAt(position);
        const QSignalBlocker block(spin);
        spin->setValue(value);
        change(member, row.name, numberText(value), slider->isSliderDown() ? EditPhase::Dragging : EditPhase::Settled);
    });
    connect(slider, &QSlider::sliderReleased, this, [this, slider, member, &row, valueAt] {
        change(member, row.name, numberText(valueAt(slider->value())), EditPhase::Settled);
    });
    connect(spin, &QDoubleSpinBox::valueChanged, this,
            [this, member, &row](double value) { change(member, row.name, numberText(value), EditPhase::Settled); });
    field.show = [slider, spin, &row](const std::string &text) {
        const double value = toQString(text).toDouble();
        const QSignalBlocker blockSlider(slider), blockSpin(spin);
        spin->setValue(value);
        if (!slider->isSliderDown()) {
            slider->setValue(static_cast<int>(std::lround((value - row.min) / (row.max - row.min) * slider->maximum())));
        }
    };
    return box;
}

QWidget *ParamForm::integerControl(std::size_t member, const ParamRow &row, Field &field)
{
    auto *spin = new QSpinBox;
    spin->setRange(static_cast<int>(std::max(row.min, -1e9)), static_cast<int>(row.max > row.min ? std::min(row.max, 1e9) : 1e9));
    spin->setKeyboardTracking(false);
    connect(spin, &QSpinBox::valueChanged, this,
            [this, member, &row](int value) { change(member, row.name, std::to_string(value), EditPhase::Settled); });
    field.show = [spin](const std::string &text) {
        const QSignalBlocker block(spin);
        spin->setValue(toQString(text).toInt());
    };
    return spin;
}

QWidget *ParamForm::wordControl(std::size_t member, const ParamRow &row, Field &field)
{
    auto *combo = new QComboBox;
    for (const std::string &value : row.values) {
        combo->addItem(toQString(value));
    }
    connect(combo, &QComboBox::activated, this,
            [this, combo, member, &row] { change(member, row.name, combo->currentText().toStdString(), EditPhase::Settled); });
    field.show = [combo](const std::string &text) {
        const QSignalBlocker block(combo);
        combo->setCurrentText(toQString(text));
    };
    return combo;
}

QWidget *ParamForm::textControl(std::size_t member, const ParamRow &row, Field &field)
{
    // Numbers that also accept words, and lists: typed, checked by the method table like --set.
    auto *edit = new QLineEdit;
    edit->setPlaceholderText(toQString(row.defaultValue));
    connect(edit, &QLineEdit::editingFinished, this, [this, edit, member, &row] {
        const std::string text = edit->text().trimmed().toStdString();
        const std::string before = valueOf(m_candidate.chain[member], row.name);
        if (text.empty() || text == (before.empty() ? row.defaultValue : before)) {
            return;
        }
        const MethodRow *method = findMethod(m_candidate.chain[member].method);
        ChainMember changed = m_candidate.chain[member];
        setValue(changed, row.name, text);
        const auto checked = method ? resolveParams(*method, changed) : Expected<Params>(Params{});
        edit->setStyleSheet(checked ? QString() : QStringLiteral("border: 1px solid #c42b2b"));
        edit->setToolTip(checked ? toQString(row.help) : messageOf(checked.error()));
        if (checked) {
            change(member, row.name, text, EditPhase::Settled);
        }
    });
    field.show = [edit](const std::string &text) { edit->setText(toQString(text)); };
    return edit;
}

void ParamForm::change(std::size_t member, const std::string &parameter, const std::string &value, EditPhase phase)
{
    setValue(m_candidate.chain[member], parameter, value);
    m_candidate.selectedOn.clear(); // chosen by hand now
    emit edited(m_candidate, phase);
}

void ParamForm::changeMethod(std::size_t member, const std::string &key)
{
    Candidate next = m_candidate;
    next.chain[member] = {key, {}};
    next.selectedOn.clear();
    emit edited(next, EditPhase::Settled);
}

} // namespace planish
