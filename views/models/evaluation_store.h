// Evaluations of the candidates on the selected edge, and the sweep. Drags ask the preview lane, releases ask the full lane; a
// result is current only while it answers the request last asked for its candidate.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <QObject>

#include "core/run/engine.h"
#include "views/models/lanes.h"

namespace planish {

enum class Accuracy { Preview, Exact };

/// What is known of one candidate on the current edge.
struct EvaluationSlot {
    EvaluateRequest asked; ///< last request
    QString askedKey;
    EvaluateRequest shownRequest;            ///< the request `shown` answers
    std::shared_ptr<const Evaluation> shown; ///< may answer an older request: then it is painted grey
    QString shownKey;
    std::optional<Error> error; ///< the last request failed as a whole
    bool current() const { return shown && shownKey == askedKey; }
};

struct SweepSlot {
    SweepRequest asked;
    QString askedKey;
    std::shared_ptr<const Sweep> shown;
    QString shownKey;
    std::optional<Error> error;
    bool running = false;
    bool current() const { return shown && shownKey == askedKey; }
};

class EvaluationStore : public QObject {
    Q_OBJECT
public:
    EvaluationStore(std::shared_ptr<Engine> engine, Lanes *lanes, QObject *parent = nullptr);

    void reset(std::shared_ptr<const Opened> opened); ///< another file: everything is forgotten
    void setOptions(const EvaluateOptions &options) { m_options = options; }
    const EvaluateOptions &options() const { return m_options; }

    /// Asks for candidate `index` on `edge`. A cached exact result answers at once.
    void request(int index, const EdgeId &edge, const Candidate &candidate, Accuracy accuracy);
    void keepOnly(int count); ///< candidates from `count` on no longer exist
    const EvaluationSlot *slot(int index) const;
    /// Any exact result computed before for this request (map measures, plan rows).
    std::shared_ptr<const Evaluation> cached(const EdgeId &edge, const Candidate &candidate) const;

    void requestSweep(const EdgeId &edge, const Candidate &candidate, const std::string &parameter,
                      const std::vector<double> &values);
    const SweepSlot &sweep() const { return m_sweep; }

signals:
    void evaluationChanged(int index); ///< a result arrived, or what was asked changed (the old one is stale now)
    void sweepChanged();

private:
    EvaluateRequest makeRequest(const EdgeId &edge, const Candidate &candidate, Accuracy accuracy) const;
    void deliver(int index, const EvaluateRequest &request, const QString &key,
                 const Expected<std::shared_ptr<const std::vector<Evaluation>>> &result);
    void remember(const QString &key, std::shared_ptr<const Evaluation> evaluation);

    std::shared_ptr<Engine> m_engine;
    Lanes *m_lanes;
    std::shared_ptr<const Opened> m_opened;
    EvaluateOptions m_options;
    std::map<int, EvaluationSlot> m_slots;
    std::map<QString, std::shared_ptr<const Evaluation>> m_cache;
    std::vector<QString> m_cacheOrder; ///< oldest first
    SweepSlot m_sweep;
};

} // namespace planish
