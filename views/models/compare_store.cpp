#include "views/models/compare_store.h"

#include <algorithm>

#include "views/models/number_text.h"

namespace planish {

namespace {
const QString kJob = QStringLiteral("compare");
const QString kShapes = QStringLiteral("shapes");

/// The edges of a scope that have weights, the one at hand first.
std::vector<EdgeId> edgesOf(const Opened &opened, CompareScope scope, const EdgeId &edge)
{
    std::vector<EdgeId> edges{edge};
    const Edge *here = opened.graph.find(edge);
    for (const Edge &other : opened.graph.edges) {
        const bool wanted =
            scope == CompareScope::All || (scope == CompareScope::Site && here != nullptr && other.site == here->site);
        if (wanted && other.id != edge && !other.consumers.empty() &&
            std::all_of(other.consumers.begin(), other.consumers.end(),
                        [](const Consumer &consumer) { return consumer.present; })) {
            edges.push_back(other.id);
        }
    }
    return edges;
}
struct ShapeOf {
    Candidate candidate;
    std::shared_ptr<const Rewrite> rewrite; ///< null when the evaluation was read back: the state keeps no factors
};

Expected<ValueShapes> shapesOf(const Engine &engine, const Opened &opened, const EdgeId &edge, const EvaluateOptions &options,
                               const std::vector<ShapeOf> &wanted, std::stop_token stop, const ProgressSink &progress)
{
    std::vector<std::shared_ptr<const Rewrite>> rewrites;
    for (const ShapeOf &each : wanted) {
        rewrites.push_back(each.rewrite);
        if (each.rewrite) {
            continue;
        }
        auto fitted =
            engine.evaluate(opened, {.edges = {edge.value}, .candidate = each.candidate, .options = options}, stop, progress);
        if (!fitted) {
            return tl::make_unexpected(fitted.error());
        }
        rewrites.back() = fitted->front().rewrite;
    }
    return valueShapes(engine, opened, edge, options, rewrites, stop);
}

} // namespace

CompareStore::CompareStore(std::shared_ptr<Engine> engine, Lanes *lanes, QObject *parent)
    : QObject(parent), m_engine(std::move(engine)), m_lanes(lanes)
{
}

void CompareStore::reset(std::shared_ptr<const Opened> opened)
{
    m_opened = std::move(opened);
    ++m_run;
    m_edges.clear();
    m_next = 0;
    m_message.clear();
    m_comparison = std::make_shared<const Comparison>();
    m_shapes.reset();
    m_shapesKey.clear();
    emit comparisonChanged();
    emit shapesChanged();
}

void CompareStore::start(const CompareSettings &settings, const EdgeId &edge, const std::vector<Candidate> &tryCandidates,
                         const EvaluateOptions &options)
{
    if (!m_opened || edge.value.empty()) {
        return;
    }
    auto candidates = settings.preset.empty() ? Expected<std::vector<Candidate>>(tryCandidates)
                                              : presetCandidates(settings.preset, settings.effort);
    m_message = candidates ? QString() : messageOf(candidates.error());
    m_edges = candidates ? edgesOf(*m_opened, settings.scope, edge) : std::vector<EdgeId>();
    m_next = 0;
    ++m_run;
    m_request = {.edges = {},
                 .candidates = candidates ? *candidates : std::vector<Candidate>(),
                 .options = options,
                 .stateDir = m_stateFolder.toStdString()};
    auto fresh = std::make_shared<Comparison>();
    fresh->candidates = m_request.candidates;
    m_comparison = std::move(fresh);
    emit comparisonChanged();
    next();
}

void CompareStore::next()
{
    if (!running()) {
        return;
    }
    CompareRequest request = m_request;
    request.edges = {m_edges[m_next].value};
    m_lanes->submit<Comparison>(
        LaneKind::Full, kJob, QStringLiteral("compare ") + toQString(m_edges[m_next].value),
        [engine = m_engine, opened = m_opened, request](std::stop_token stop, const ProgressSink &progress) {
            return engine->compare(*opened, request, stop, progress);
        },
        [this, run = m_run](const Expected<std::shared_ptr<const Comparison>> &result) {
            if (run == m_run) {
                took(result);
            }
        });
}

void CompareStore::took(const Expected<std::shared_ptr<const Comparison>> &result)
{
    if (!running()) {
        return;
    }
    if (!result) {
        return end(result.error().code == ErrorCode::Cancelled ? stoppedText() : messageOf(result.error()));
    }
    auto grown = std::make_shared<Comparison>(*m_comparison);
    for (const EdgeComparison &edge : (*result)->edges) {
        grown->edges.push_back(edge);
    }
    grown->totals = totalsOf(grown->candidates, grown->edges);
    m_comparison = std::move(grown);
    ++m_next;
    emit comparisonChanged();
    next();
}

/// A job that still waits is dropped without a word, so the end is told here and a late answer is not listened to.
void CompareStore::stop()
{
    if (!running()) {
        return;
    }
    ++m_run;
    m_lanes->cancel(kJob);
    end(stoppedText());
}

void CompareStore::end(const QString &message)
{
    m_message = message;
    m_edges.resize(m_next);
    emit comparisonChanged();
}

QString CompareStore::stoppedText() const
{
    return QStringLiteral("Stopped after %1 of %2 edges; Compare resumes what is finished.").arg(m_next).arg(m_edges.size());
}

const EdgeComparison *CompareStore::edge(const EdgeId &edge) const
{
    const auto found = std::find_if(m_comparison->edges.begin(), m_comparison->edges.end(),
                                    [&](const EdgeComparison &each) { return each.edge == edge; });
    return found == m_comparison->edges.end() ? nullptr : &*found;
}

QString CompareStore::keyOf(const EdgeId &edge, const QString &first, const QString &second)
{
    return toQString(edge.value) + '\n' + first + '\n' + second;
}

void CompareStore::requestShapes(const EdgeId &edge, const QString &first, const QString &second)
{
    const EdgeComparison *compared = this->edge(edge);
    if (!compared || !m_opened || m_shapesKey == keyOf(edge, first, second)) {
        return;
    }
    std::vector<ShapeOf> wanted;
    for (const QString &name : {first, second}) {
        const auto candidate = std::find_if(m_request.candidates.begin(), m_request.candidates.end(),
                                            [&](const Candidate &c) { return toQString(c.name) == name; });
        const auto found = std::find_if(compared->evaluations.begin(), compared->evaluations.end(),
                                        [&](const Evaluation &e) { return toQString(e.candidate) == name; });
        if (candidate == m_request.candidates.end() || found == compared->evaluations.end()) {
            return;
        }
        wanted.push_back({*candidate, found->rewrite});
    }
    m_shapesKey = keyOf(edge, first, second);
    m_lanes->submit<ValueShapes>(
        LaneKind::Preview, kShapes, QStringLiteral("value shapes"),
        [engine = m_engine, opened = m_opened, edge, options = m_request.options, wanted](std::stop_token stop,
                                                                                          const ProgressSink &progress) {
            return shapesOf(*engine, *opened, edge, options, wanted, stop, progress);
        },
        [this, key = m_shapesKey](const Expected<std::shared_ptr<const ValueShapes>> &result) {
            if (key != m_shapesKey) {
                return;
            }
            m_shapes = result ? *result : nullptr;
            emit shapesChanged();
        });
}

} // namespace planish
