#include "views/models/evaluation_store.h"

#include "views/models/candidate_text.h"
#include "views/models/number_text.h"

namespace planish {

namespace {
constexpr std::size_t kCachedEvaluations = 256; // a drag over a slider and back, for a handful of edges

QString exactKeyOf(EvaluateRequest request)
{
    request.options.preview = false;
    return requestKey(request);
}
} // namespace

EvaluationStore::EvaluationStore(std::shared_ptr<Engine> engine, Lanes *lanes, QObject *parent)
    : QObject(parent), m_engine(std::move(engine)), m_lanes(lanes)
{
}

void EvaluationStore::reset(std::shared_ptr<const Opened> opened)
{
    m_opened = std::move(opened);
    m_slots.clear();
    m_cache.clear();
    m_cacheOrder.clear();
    m_sweep = {};
    emit sweepChanged();
}

EvaluateRequest EvaluationStore::makeRequest(const EdgeId &edge, const Candidate &candidate, Accuracy accuracy) const
{
    EvaluateRequest request{.edges = {edge.value}, .candidate = candidate, .options = m_options};
    request.options.preview = accuracy == Accuracy::Preview;
    request.candidate.edges.clear();
    return request;
}

void EvaluationStore::request(int index, const EdgeId &edge, const Candidate &candidate, Accuracy accuracy)
{
    if (!m_opened || edge.value.empty()) {
        return;
    }
    const EvaluateRequest request = makeRequest(edge, candidate, accuracy);
    const QString key = requestKey(request), exactKey = exactKeyOf(request);
    EvaluationSlot &slot = m_slots[index];
    if (slot.shown && slot.shownRequest.edges != request.edges) {
        slot.shown.reset(); // another edge: not even grey
    }
    slot.asked = request;
    slot.askedKey = key;
    slot.error.reset();
    if (const auto at = m_cache.find(exactKey); at != m_cache.end()) {
        slot.shown = at->second;
        slot.shownKey = key;
        slot.shownRequest = request;
        emit evaluationChanged(index);
        return;
    }
    emit evaluationChanged(index);
    const LaneKind lane = accuracy == Accuracy::Preview ? LaneKind::Preview : LaneKind::Full;
    const QString laneKey = QStringLiteral("%1:%2").arg(accuracy == Accuracy::Preview ? "preview" : "evaluate").arg(index);
    m_lanes->submit<std::vector<Evaluation>>(
        lane, laneKey, QStringLiteral("%1 on %2").arg(toQString(candidateLabel(candidate)), toQString(edge.value)),
        [engine = m_engine, opened = m_opened, request](std::stop_token stop, const ProgressSink &sink) {
            return engine->evaluate(*opened, request, stop, sink);
        },
        [this, index, request, key](const Expected<std::shared_ptr<const std::vector<Evaluation>>> &result) {
            deliver(index, request, key, result);
        });
}

void EvaluationStore::deliver(int index, const EvaluateRequest &request, const QString &key,
                              const Expected<std::shared_ptr<const std::vector<Evaluation>>> &result)
{
    std::shared_ptr<const Evaluation> evaluation;
    if (result && !(*result)->empty()) {
        evaluation = std::shared_ptr<const Evaluation>(*result, &(*result)->front());
        // Small edges are exact even in a preview (no interval): such a result answers the exact request too.
        if (!request.options.preview || !evaluation->interval) {
            remember(exactKeyOf(request), evaluation);
        }
    }
    const auto at = m_slots.find(index);
    if (at == m_slots.end() || at->second.asked.edges != request.edges) {
        return; // the candidate or the edge is gone
    }
    EvaluationSlot &slot = at->second;
    const bool answers = slot.askedKey == key;
    if (!answers && !(request.options.preview && evaluation && !slot.current())) {
        return; // stale; only a preview of the drag in progress is shown, greyed
    }
    if (!result) {
        slot.error = result.error();
    } else if (evaluation) {
        slot.shown = evaluation;
        slot.shownKey = key;
        slot.shownRequest = request;
    }
    emit evaluationChanged(index);
}

void EvaluationStore::remember(const QString &key, std::shared_ptr<const Evaluation> evaluation)
{
    if (m_cache.emplace(key, std::move(evaluation)).second) {
        m_cacheOrder.push_back(key);
        if (m_cacheOrder.size() > kCachedEvaluations) {
            m_cache.erase(m_cacheOrder.front());
            m_cacheOrder.erase(m_cacheOrder.begin());
        }
    }
}

void EvaluationStore::keepOnly(int count)
{
    m_slots.erase(m_slots.lower_bound(count), m_slots.end());
}

const EvaluationSlot *EvaluationStore::slot(int index) const
{
    const auto at = m_slots.find(index);
    return at == m_slots.end() ? nullptr : &at->second;
}

std::shared_ptr<const Evaluation> EvaluationStore::cached(const EdgeId &edge, const Candidate &candidate) const
{
    const auto at = m_cache.find(requestKey(makeRequest(edge, candidate, Accuracy::Exact)));
    return at == m_cache.end() ? nullptr : at->second;
}

void EvaluationStore::requestSweep(const EdgeId &edge, const Candidate &candidate, const std::string &parameter,
                                   const std::vector<double> &values)
{
    if (!m_opened || edge.value.empty()) {
        return;
    }
    SweepRequest request{.base = makeRequest(edge, candidate, Accuracy::Exact), .parameter = parameter, .values = values};
    m_sweep.asked = request;
    m_sweep.askedKey = requestKey(request.base) + '|' + toQString(parameter);
    m_sweep.running = true;
    m_sweep.error.reset();
    emit sweepChanged();
    m_lanes->submit<Sweep>(
        LaneKind::Full, QStringLiteral("sweep"),
        QStringLiteral("sweep of %1 on %2").arg(toQString(parameter), toQString(edge.value)),
        [engine = m_engine, opened = m_opened, request](std::stop_token stop, const ProgressSink &sink) {
            return engine->sweep(*opened, request, stop, sink);
        },
        [this, key = m_sweep.askedKey](const Expected<std::shared_ptr<const Sweep>> &result) {
            if (key != m_sweep.askedKey) {
                return;
            }
            m_sweep.running = false;
            if (result) {
                m_sweep.shown = *result;
                m_sweep.shownKey = key;
            } else {
                m_sweep.error = result.error();
            }
            emit sweepChanged();
        });
}

} // namespace planish
