#include "views/panels/try_panel.h"

#include <QFormLayout>
#include <QGroupBox>
#include <QHBoxLayout>
#include <QScrollArea>
#include <QSplitter>
#include <QVBoxLayout>

#include "views/models/number_text.h"
#include "views/models/status_text.h"
#include "views/panels/provenance.h"

namespace planish {

TryPanel::TryPanel(Session *session, QWidget *parent)
    : QWidget(parent), m_session(session), m_table(new CandidateTable(session)), m_form(new ParamForm), m_act(new QLineEdit),
      m_weight(new QLineEdit), m_specError(new QLabel), m_title(new QLabel), m_status(new QLabel), m_details(new QLabel),
      m_pin(new QPushButton(QStringLiteral("Put into plan"))), m_add(new QPushButton(QStringLiteral("Add candidate"))),
      m_remove(new QPushButton(QStringLiteral("Remove"))), m_pages(new QTabWidget),
      m_profile(new ChannelProfile(QStringLiteral("max |x| per channel, before and after"))), m_sweep(new SweepPanel(session)),
      m_compare(new ComparePanel(session))
{
    auto *split = new QSplitter(Qt::Horizontal);
    split->addWidget(m_left = buildLeft());
    split->addWidget(buildPages());
    split->setStretchFactor(1, 1);
    split->setSizes({250, 560});
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(6, 6, 6, 6);
    layout->addWidget(buildTop());
    layout->addWidget(split, 1);
    connectAll();
    showCandidate();
    refresh();
}

QWidget *TryPanel::buildLeft()
{
    auto *specs = new QGroupBox(QStringLiteral("Quantizers, for all candidates"));
    auto *form = new QFormLayout(specs);
    form->setContentsMargins(6, 6, 6, 6);
    form->addRow(QStringLiteral("act"), m_act);
    form->addRow(QStringLiteral("weight"), m_weight);
    form->addRow(m_specError);
    m_specError->setWordWrap(true);
    m_specError->hide();
    m_act->setToolTip(QStringLiteral("Activation quantizer: int8:token, int4:group128, fp8_e4m3:tensor, mxfp4, none …"));
    m_weight->setToolTip(QStringLiteral("Weight quantizer: int8:row, int4:group128:asym, nvfp4, none …"));
    m_act->setAccessibleName(QStringLiteral("Activation quantizer"));
    m_weight->setAccessibleName(QStringLiteral("Weight quantizer"));
    auto *content = new QWidget;
    auto *column = new QVBoxLayout(content);
    column->setContentsMargins(0, 0, 4, 0);
    column->addWidget(specs);
    column->addWidget(m_form, 1);
    auto *scroll = new QScrollArea;
    scroll->setWidget(content);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setMinimumWidth(230);
    return scroll;
}

QWidget *TryPanel::buildPages()
{
    m_profile->setProvenance(provenanceFor(m_session, ProvenanceOf::Candidate));
    m_profile->setEmptyText(QStringLiteral("Waiting for the first result."));
    m_pages->addTab(m_profile, QStringLiteral("Profile before and after"));
    m_pages->addTab(m_sweep, QStringLiteral("Sweep"));
    m_pages->addTab(m_compare, QStringLiteral("Compare"));
    connect(m_pages, &QTabWidget::currentChanged, this, [this](int page) { m_left->setVisible(page != static_cast<int>(TryPage::Compare)); });
    m_pages->setDocumentMode(true);
    return m_pages;
}

QWidget *TryPanel::buildTop()
{
    m_status->setWordWrap(true);
    m_details->setWordWrap(true);
    m_details->setTextInteractionFlags(Qt::TextSelectableByMouse);
    auto *buttons = new QHBoxLayout;
    buttons->addWidget(m_title, 1);
    buttons->addWidget(m_add);
    buttons->addWidget(m_remove);
    buttons->addWidget(m_pin);
    auto *top = new QWidget;
    auto *layout = new QVBoxLayout(top);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(buttons);
    layout->addWidget(m_table);
    layout->addWidget(m_status);
    layout->addWidget(m_details);
    return top;
}

void TryPanel::connectAll()
{
    CandidateListModel *candidates = m_session->candidates();
    connect(m_form, &ParamForm::edited, this, [this](const Candidate &candidate, EditPhase phase) {
        m_session->editCandidate(m_session->candidates()->current(), candidate, phase);
    });
    connect(m_act, &QLineEdit::editingFinished, this, &TryPanel::specsEdited);
    connect(m_weight, &QLineEdit::editingFinished, this, &TryPanel::specsEdited);
    connect(candidates, &CandidateListModel::candidatesChanged, this, &TryPanel::showCandidate);
    connect(candidates, &CandidateListModel::currentChanged, this, [this] {
        showCandidate();
        refresh();
    });
    connect(m_session->evaluations(), &EvaluationStore::evaluationChanged, this, &TryPanel::refresh);
    connect(m_session->selection(), &Selection::edgeChanged, this, &TryPanel::refresh);
    connect(m_session->selection(), &Selection::channelChanged, this,
            [this] { m_profile->setSelectedChannel(m_session->selection()->channel()); });
    connect(m_profile, &ChannelProfile::channelPicked, m_session->selection(), &Selection::setChannel);
    connect(m_add, &QPushButton::clicked, this,
            [this] { m_session->addCandidate(m_session->candidates()->at(m_session->candidates()->current())); });
    connect(m_remove, &QPushButton::clicked, this, [this] { m_session->removeCandidate(m_session->candidates()->current()); });
    connect(m_pin, &QPushButton::clicked, this, [this] {
        const auto pinned = m_session->pinCurrent();
        emit messaged(pinned ? QStringLiteral("Put into the plan of %1.").arg(toQString(m_session->selection()->edge().value))
                             : messageOf(pinned.error()));
    });
}

void TryPanel::showCandidate()
{
    const Candidate &candidate = m_session->candidates()->at(m_session->candidates()->current());
    m_form->setCandidate(candidate);
    if (!m_act->hasFocus() || !m_act->isModified()) {
        m_act->setText(toQString(canonicalText(candidate.act, Role::Activation)));
    }
    if (!m_weight->hasFocus() || !m_weight->isModified()) {
        m_weight->setText(toQString(canonicalText(candidate.weight, Role::Weight)));
    }
    m_remove->setEnabled(m_session->candidates()->size() > 2);
}

void TryPanel::specsEdited()
{
    const auto act = parseQuantSpec(m_act->text().trimmed().toStdString(), Role::Activation);
    const auto weight = parseQuantSpec(m_weight->text().trimmed().toStdString(), Role::Weight);
    m_specError->setVisible(!act || !weight);
    if (!act || !weight) {
        m_specError->setText(messageOf(!act ? act.error() : weight.error()));
        QPalette red = palette();
        red.setColor(QPalette::WindowText, lightColour(Light::Red, palette()));
        m_specError->setPalette(red);
        return;
    }
    m_act->setModified(false);
    m_weight->setModified(false);
    const Candidate &now = m_session->candidates()->at(0);
    if (!(now.act == *act) || !(now.weight == *weight)) {
        m_session->editSpecs(*act, *weight);
    }
}

void TryPanel::refresh()
{
    const int current = m_session->candidates()->current();
    const EvaluationSlot *slot = m_session->evaluations()->slot(current);
    const Edge *edge = m_session->currentEdge();
    m_title->setText(edge ? QStringLiteral("<b>%1</b> · basis %2").arg(toQString(edge->id.value), toQString(edge->basis))
                          : QStringLiteral("No edge selected"));
    const QColor colour = lightColour(lightOf(slot), palette());
    m_status->setText(
        QStringLiteral("<span style='color:%1'>●</span> %2").arg(colour.name(), statusSentence(slot).toHtmlEscaped()));
    const auto allowed = m_session->canPin(current);
    m_pin->setEnabled(allowed.has_value());
    m_pin->setToolTip(allowed ? QStringLiteral("The plan uses this candidate on this edge") : messageOf(allowed.error()));
    QString details;
    if (slot != nullptr && slot->shown && slot->shown->output) {
        const Evaluation &e = *slot->shown;
        details = QStringLiteral("Error %1").arg(shortNumber(e.output->relativeFrobenius));
        if (e.uncertainty) {
            details += QStringLiteral(" (95 % spread %1 to %2, %3 %4s)")
                           .arg(shortNumber(e.uncertainty->low), shortNumber(e.uncertainty->high))
                           .arg(e.uncertainty->units)
                           .arg(toQString(e.uncertainty->unit));
        }
        details += e.interval ? QStringLiteral(", sampled from %1 of %2 held-out rows.").arg(e.interval->rows).arg(e.rows.heldOut)
                              : QStringLiteral(", exact on %1 held-out rows.").arg(e.rows.heldOut);
        details += QStringLiteral(" %1.").arg(ledgerSentence(e));
        const QString dominated = dominationSentence(e);
        if (!dominated.isEmpty()) {
            details += QStringLiteral("\n⚠ ") + dominated;
        }
    }
    m_details->setText(details);
    fillProfile();
}

void TryPanel::fillProfile()
{
    const EvaluationSlot *slot = m_session->evaluations()->slot(m_session->candidates()->current());
    const auto analysis = m_session->geometry()->edge(m_session->selection()->edge());
    std::vector<ProfileSeries> series;
    if (analysis && analysis->statistics) {
        series.push_back({QStringLiteral("before"), analysis->statistics->channel.maxAbs, SeriesTone::Before});
    }
    if (slot != nullptr && slot->shown && slot->shown->geometryAfter) {
        series.push_back({QStringLiteral("after"), slot->shown->geometryAfter->channelMaxAbs, SeriesTone::Main});
    }
    m_profile->setProfile(std::move(series), AxisScale::Logarithmic, ProfileOrder::Natural, QStringLiteral("max |x|"));
    m_profile->setStale(slot != nullptr && !slot->current() && slot->shown ? QStringLiteral("computing") : QString());
    m_profile->setSelectedChannel(m_session->selection()->channel());
}

} // namespace planish
