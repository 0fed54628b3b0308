#include "views/models/session.h"

#include "views/models/candidate_text.h"
#include "views/models/edit_commands.h"
#include "views/models/number_text.h"
#include "views/models/status_text.h"

namespace planish {

Session::Session(std::shared_ptr<Engine> engine, QObject *parent)
    : QObject(parent), m_engine(std::move(engine)), m_lanes(std::make_unique<Lanes>()), m_geometry(m_engine, m_lanes.get()),
      m_evaluations(m_engine, m_lanes.get()), m_comparisons(m_engine, m_lanes.get()), m_plan(m_engine, m_lanes.get())
{
    m_candidates.setStore(&m_evaluations);
    connect(&m_candidates, &CandidateListModel::candidatesChanged, this, &Session::candidatesEdited);
    connect(&m_evaluations, &EvaluationStore::evaluationChanged, &m_candidates, &CandidateListModel::resultsChanged);
    connect(&m_selection, &Selection::edgeChanged, this, &Session::evaluateAll);
}

Session::~Session()
{
    m_lanes.reset();
}

const Edge *Session::currentEdge() const
{
    return m_opened ? m_opened->graph.find(m_selection.edge()) : nullptr;
}

void Session::open(const QString &file, const QString &weights)
{
    const OpenRequest request{.file = file.toStdString(), .weights = weights.toStdString(), .global = m_engine->global()};
    m_lanes->discardAll();
    emit openStarted(file);
    m_lanes->submit<std::shared_ptr<const Opened>>(
        LaneKind::Io, QStringLiteral("open"), QStringLiteral("Opening ") + file,
        [engine = m_engine, request](std::stop_token stop, const ProgressSink &sink) {
            return engine->open(request, stop, sink);
        },
        [this, request](const Expected<std::shared_ptr<const std::shared_ptr<const Opened>>> &result) {
            if (result) {
                took(**result, request);
            } else {
                emit openFailed(messageOf(result.error()));
            }
        });
}

void Session::took(std::shared_ptr<const Opened> opened, const OpenRequest &request)
{
    m_selection.clear();
    m_opened = std::move(opened);
    m_request = request;
    m_undo.clear();
    m_geometry.reset(m_opened);
    m_evaluations.reset(m_opened);
    m_comparisons.reset(m_opened);
    m_plan.reset(m_opened, toQString(request.file));
    emit openedChanged();
    m_geometry.analyseAll(m_evaluations.options().rows);
    if (!m_opened->graph.edges.empty()) {
        m_selection.setEdge(m_opened->graph.edges.front().id);
    }
}

Expected<void> Session::find(const QString &text)
{
    if (!m_opened) {
        return usageError("search", "no file is open", "a dump");
    }
    const QString trimmed = text.trimmed();
    const qsizetype colon = trimmed.lastIndexOf(':');
    const QString name = colon < 0 ? trimmed : trimmed.left(colon);
    auto ids = matchEdges(m_opened->graph, {name.toStdString()});
    if (!ids) {
        return tl::make_unexpected(ids.error());
    }
    const Edge *edge = m_opened->graph.find(ids->front());
    if (colon >= 0) {
        bool number = false;
        const qlonglong channel = trimmed.mid(colon + 1).toLongLong(&number);
        if (!number || channel < 0 || channel >= static_cast<qlonglong>(edge->channels)) {
            return usageError(edge->id.value, "no channel " + trimmed.mid(colon + 1).toStdString(),
                              "0 to " + std::to_string(edge->channels - 1));
        }
        m_selection.setEdge(edge->id);
        m_selection.setChannel(channel);
        return {};
    }
    m_selection.setEdge(edge->id);
    return {};
}

void Session::setCandidates(std::vector<Candidate> candidates, int current, const QString &what, EditPhase phase)
{
    for (Candidate &candidate : candidates) {
        candidate.name = candidateLabel(candidate);
    }
    // Values that follow each other while the button is held belong to one gesture; the value on release still does.
    const bool first = m_phase == EditPhase::Settled;
    if (phase == EditPhase::Dragging && first) {
        ++m_gesture;
    }
    const int gesture = phase == EditPhase::Dragging || !first ? m_gesture : 0;
    m_phase = phase;
    m_undo.push(new CandidatesCommand(&m_candidates, {m_candidates.candidates(), m_candidates.current()},
                                      {std::move(candidates), current}, gesture, what));
}

void Session::candidatesEdited()
{
    m_evaluations.keepOnly(m_candidates.size());
    const EdgeId edge = m_selection.edge();
    for (int i = 0; i < m_candidates.size(); ++i) {
        const EvaluationSlot *slot = m_evaluations.slot(i);
        const bool same = slot != nullptr && candidateKey(slot->asked.candidate) == candidateKey(m_candidates.at(i)) &&
                          (m_phase == EditPhase::Dragging || !slot->asked.options.preview);
        if (!same) {
            m_evaluations.request(i, edge, m_candidates.at(i),
                                  m_phase == EditPhase::Dragging ? Accuracy::Preview : Accuracy::Exact);
        }
    }
}

void Session::evaluateAll()
{
    for (int i = 0; i < m_candidates.size(); ++i) {
        m_evaluations.request(i, m_selection.edge(), m_candidates.at(i), Accuracy::Exact);
    }
}

void Session::editCandidate(int index, const Candidate &candidate, EditPhase phase)
{
    if (index < 1 || index >= m_candidates.size()) {
        return; // the identity is never edited
    }
    std::vector<Candidate> list = m_candidates.candidates();
    list[static_cast<std::size_t>(index)] = candidate;
    setCandidates(std::move(list), m_candidates.current(), QStringLiteral("change %1").arg(toQString(chainText(candidate.chain))),
                  phase);
}

void Session::editSpecs(const QuantSpec &act, const QuantSpec &weight)
{
    std::vector<Candidate> list = m_candidates.candidates();
    for (Candidate &candidate : list) {
        candidate.act = act;
        candidate.weight = weight;
    }
    setCandidates(std::move(list), m_candidates.current(), QStringLiteral("change quantizers"), EditPhase::Settled);
}

void Session::addCandidate(const Candidate &candidate)
{
    std::vector<Candidate> list = m_candidates.candidates();
    list.push_back(candidate);
    const int current = static_cast<int>(list.size()) - 1;
    setCandidates(std::move(list), current, QStringLiteral("add candidate"), EditPhase::Settled);
}

void Session::removeCandidate(int index)
{
    if (index < 1 || index >= m_candidates.size() || m_candidates.size() <= 2) {
        return; // identity and one more always stay
    }
    std::vector<Candidate> list = m_candidates.candidates();
    list.erase(list.begin() + index);
    setCandidates(std::move(list), std::min(m_candidates.current(), static_cast<int>(list.size()) - 1),
                  QStringLiteral("remove candidate"), EditPhase::Settled);
}

void Session::adoptFromSweep(double value)
{
    const SweepSlot &sweep = m_evaluations.sweep();
    if (!sweep.current()) {
        return;
    }
    Candidate candidate = sweep.asked.base.candidate;
    const QString parameter = toQString(sweep.asked.parameter);
    const std::string text = QString::number(value, 'g', 12).toStdString();
    const qsizetype dot = parameter.indexOf('.');
    const int member = dot < 0 ? 0 : parameter.left(dot).toInt() - 1;
    if (parameter == "seed") {
        candidate.seed = static_cast<std::uint64_t>(value);
    } else if (member >= 0 && member < static_cast<int>(candidate.chain.size())) {
        setValue(candidate.chain[static_cast<std::size_t>(member)], parameter.mid(dot + 1).toStdString(), text);
    }
    candidate.selectedOn = "held_out";
    editCandidate(m_candidates.current(), candidate, EditPhase::Settled);
}

Expected<void> Session::canPin(int index) const
{
    const EvaluationSlot *slot = m_evaluations.slot(index);
    const std::string subject = m_selection.edge().value;
    if (slot == nullptr || !slot->current() || slot->error) {
        return refusal(subject, "this candidate has no finished result here", "an exact evaluation", "not_evaluated");
    }
    const Evaluation &e = *slot->shown;
    if (lightOf(e) == Light::Red) {
        return refusal(subject, statusSentence(e).toStdString(), "a candidate that is not red", e.rule);
    }
    if (e.analysisOnly || e.partial) {
        return refusal(subject, "this result is for analysis only", "a candidate a runtime can execute", "analysis_only");
    }
    return {};
}

Expected<void> Session::pinCurrent()
{
    const auto allowed = canPin(m_candidates.current());
    if (!allowed) {
        return allowed;
    }
    Pins pins = m_plan.pins();
    pins[m_selection.edge()] = m_candidates.at(m_candidates.current());
    m_undo.push(new PinsCommand(&m_plan, std::move(pins), QStringLiteral("put into plan")));
    return {};
}

void Session::unpin(const EdgeId &edge)
{
    Pins pins = m_plan.pins();
    if (pins.erase(edge) > 0) {
        m_undo.push(new PinsCommand(&m_plan, std::move(pins), QStringLiteral("take out of the plan")));
    }
}

} // namespace planish
