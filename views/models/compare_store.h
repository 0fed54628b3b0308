// Comparisons of the window: candidates of the Try tab or of a preset on one edge, one site or all edges. Edge after edge in the
// full lane, so that finished edges are shown while others run; what is kept in the state folder resumes after an interruption.
#pragma once

#include <memory>
#include <optional>

#include <QObject>
#include <QString>

#include "core/run/engine.h"
#include "core/run/value_shapes.h"
#include "views/models/lanes.h"

namespace planish {

enum class CompareScope { Edge, Site, All };

struct CompareSettings {
    std::string preset; ///< empty = the candidates of the Try tab
    Effort effort = Effort::Quick;
    CompareScope scope = CompareScope::Edge;
};

class CompareStore : public QObject {
    Q_OBJECT
public:
    CompareStore(std::shared_ptr<Engine> engine, Lanes *lanes, QObject *parent = nullptr);
    void reset(std::shared_ptr<const Opened> opened);
    void setStateFolder(const QString &folder) { m_stateFolder = folder; } ///< empty = nothing is kept

    void start(const CompareSettings &settings, const EdgeId &edge, const std::vector<Candidate> &tryCandidates,
               const EvaluateOptions &options);
    void stop();
    bool running() const { return m_next < m_edges.size(); }
    std::size_t done() const { return m_next; }
    std::size_t total() const { return m_edges.size(); }
    const QString &message() const { return m_message; } ///< why the last one ended early, empty = it did not

    /// What is known so far; never null.
    const std::shared_ptr<const Comparison> &comparison() const { return m_comparison; }
    const EdgeComparison *edge(const EdgeId &edge) const;

    /// Asks for the value shapes of two candidates of the comparison on an edge; the newest request wins.
    void requestShapes(const EdgeId &edge, const QString &first, const QString &second);
    const std::shared_ptr<const ValueShapes> &shapes() const { return m_shapes; } ///< null while nothing is known
    const QString &shapesKey() const { return m_shapesKey; }
    static QString keyOf(const EdgeId &edge, const QString &first, const QString &second);

signals:
    void comparisonChanged();
    void shapesChanged();

private:
    void next();
    void end(const QString &message); ///< of a run, finished or not
    QString stoppedText() const;
    void took(const Expected<std::shared_ptr<const Comparison>> &result);

    std::shared_ptr<Engine> m_engine;
    Lanes *m_lanes;
    std::shared_ptr<const Opened> m_opened;
    CompareRequest m_request;
    std::vector<EdgeId> m_edges;
    std::size_t m_next = 0;
    int m_run = 0; ///< answers of an earlier run are not listened to
    std::shared_ptr<const Comparison> m_comparison = std::make_shared<const Comparison>();
    std::shared_ptr<const ValueShapes> m_shapes;
    QString m_shapesKey, m_stateFolder, m_message;
};

} // namespace planish
