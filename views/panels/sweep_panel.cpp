#include "views/panels/sweep_panel.h"

#include <cmath>

#include <QHBoxLayout>
#include <QVBoxLayout>

#include "views/models/candidate_text.h"
#include "views/models/number_text.h"
#include "views/panels/provenance.h"

namespace planish {

namespace {
constexpr int kSweepValues = 20; // intervals of a sweep: alpha in steps of .05
constexpr int kSeeds = 8;
} // namespace

std::vector<SweepChoice> sweepChoices(const Candidate &candidate)
{
    std::vector<SweepChoice> choices;
    for (std::size_t m = 0; m < candidate.chain.size(); ++m) {
        const MethodRow *method = findMethod(candidate.chain[m].method);
        if (method == nullptr) {
            continue;
        }
        for (const ParamRow &row : method->params) {
            const double span = row.max - row.min;
            const bool bounded = std::isfinite(span) && span > 0 && span <= 1000;
            if ((row.type != ParamType::Real && row.type != ParamType::Integer) || !bounded) {
                continue;
            }
            SweepChoice choice{candidate.chain.size() > 1 ? std::to_string(m + 1) + "." + row.name : row.name, {}};
            double step = span / kSweepValues;
            if (row.type == ParamType::Integer) {
                step = std::max(1.0, std::ceil(step));
            }
            const int count = static_cast<int>(std::floor(span / step + 1e-9));
            for (int i = 0; i <= count; ++i) {
                choice.values.push_back(row.min + i * step);
            }
            choices.push_back(std::move(choice));
        }
    }
    SweepChoice seeds{"seed", {}};
    for (int i = 0; i < kSeeds; ++i) {
        seeds.values.push_back(i);
    }
    choices.push_back(std::move(seeds));
    return choices;
}

SweepPanel::SweepPanel(Session *session, QWidget *parent)
    : QWidget(parent), m_session(session), m_parameter(new QComboBox), m_run(new QPushButton(QStringLiteral("Run sweep"))),
      m_adopt(new QPushButton(QStringLiteral("Adopt minimum"))), m_text(new QLabel), m_chart(new SweepChart)
{
    m_text->setWordWrap(true);
    m_parameter->setAccessibleName(QStringLiteral("Parameter to sweep"));
    m_parameter->setMinimumContentsLength(10);
    m_adopt->setToolTip(
        QStringLiteral("Takes the value of the smallest error; marked as selected on held-out rows, and the plan selects again"));
    m_chart->setProvenance(provenanceFor(session, ProvenanceOf::Candidate));
    auto *row = new QHBoxLayout;
    row->addWidget(m_parameter);
    row->addWidget(m_run);
    row->addWidget(m_adopt);
    row->addWidget(m_text, 1);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 4, 0, 0);
    layout->addLayout(row);
    layout->addWidget(m_chart, 1);
    connect(m_run, &QPushButton::clicked, this, &SweepPanel::start);
    connect(m_adopt, &QPushButton::clicked, this, [this] {
        const SweepSlot &sweep = m_session->evaluations()->sweep();
        if (sweep.shown && sweep.shown->best < sweep.shown->values.size()) {
            m_session->adoptFromSweep(sweep.shown->values[sweep.shown->best]);
        }
    });
    connect(m_chart, &SweepChart::valuePicked, session, &Session::adoptFromSweep);
    connect(session->evaluations(), &EvaluationStore::sweepChanged, this, &SweepPanel::refresh);
    connect(session->candidates(), &CandidateListModel::candidatesChanged, this, &SweepPanel::fillChoices);
    connect(session->candidates(), &CandidateListModel::currentChanged, this, &SweepPanel::fillChoices);
    connect(session->selection(), &Selection::edgeChanged, this, &SweepPanel::refresh);
    fillChoices();
}

void SweepPanel::fillChoices()
{
    const QString before = m_parameter->currentText();
    m_choices = sweepChoices(m_session->candidates()->at(m_session->candidates()->current()));
    const QSignalBlocker block(m_parameter);
    m_parameter->clear();
    for (const SweepChoice &choice : m_choices) {
        m_parameter->addItem(toQString(choice.parameter));
    }
    if (const int at = m_parameter->findText(before); at >= 0) {
        m_parameter->setCurrentIndex(at);
    }
    refresh();
}

void SweepPanel::start()
{
    const int at = m_parameter->currentIndex();
    if (at >= 0 && m_session->currentEdge() != nullptr) {
        const SweepChoice &choice = m_choices[static_cast<std::size_t>(at)];
        m_session->evaluations()->requestSweep(m_session->selection()->edge(),
                                               m_session->candidates()->at(m_session->candidates()->current()), choice.parameter,
                                               choice.values);
    }
}

void SweepPanel::refresh()
{
    const SweepSlot &sweep = m_session->evaluations()->sweep();
    const bool here =
        sweep.shown && !sweep.asked.base.edges.empty() && sweep.asked.base.edges.front() == m_session->selection()->edge().value;
    m_run->setEnabled(m_session->currentEdge() != nullptr);
    m_adopt->setEnabled(here && sweep.current());
    m_chart->setSweep(sweep.shown);
    m_chart->setStale(!sweep.shown    ? QString()
                      : sweep.running ? QStringLiteral("computing")
                      : !here         ? QStringLiteral("sweep of another edge")
                                      : QString());
    if (sweep.running) {
        m_text->setText(
            QStringLiteral("Computing %1 values of %2.").arg(sweep.asked.values.size()).arg(toQString(sweep.asked.parameter)));
    } else if (sweep.error) {
        m_text->setText(messageOf(*sweep.error));
    } else if (here && sweep.shown->best < sweep.shown->values.size()) {
        m_text->setText(QStringLiteral("Minimum at %1%2. Click the curve to adopt a value.")
                            .arg(shortNumber(sweep.shown->values[sweep.shown->best]),
                                 sweep.shown->tie.size() > 1
                                     ? QStringLiteral(", tied with %1 others").arg(sweep.shown->tie.size() - 1)
                                     : QString()));
    } else {
        m_text->clear();
    }
    const Candidate &candidate = m_session->candidates()->at(m_session->candidates()->current());
    std::optional<double> value;
    if (here && !candidate.chain.empty()) {
        const QString parameter = toQString(sweep.asked.parameter);
        const qsizetype dot = parameter.indexOf('.');
        const auto member = static_cast<std::size_t>(dot < 0 ? 0 : std::max(0, parameter.left(dot).toInt() - 1));
        const std::string typed = member < candidate.chain.size()
                                      ? valueOf(candidate.chain[member], parameter.mid(dot + 1).toStdString())
                                      : std::string();
        bool number = false;
        const double parsed = toQString(typed).toDouble(&number);
        value = parameter == "seed" ? std::optional(static_cast<double>(candidate.seed))
                : number            ? std::optional(parsed)
                                    : std::nullopt;
    }
    m_chart->setCurrentValue(value);
}

} // namespace planish
