// The plan being made: settings, pins, the finished Plan, its manifest, and what apply and verify said. Long work runs in the
// lanes.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include <QObject>
#include <QString>

#include "core/run/engine.h"
#include "views/models/lanes.h"

namespace planish {

enum class Permission { Refuse, Allow };

/// The form of the Plan tab. An empty preset means the candidates of the Try tab.
struct PlanSettings {
    std::string preset = "w8a8";
    Effort effort = Effort::Quick;
    Choose choose = Choose::Lowest;
    Permission online = Permission::Refuse, functionChange = Permission::Refuse, joint = Permission::Refuse;
    Permission streams = Permission::Refuse;
    std::optional<double> maxOnlineFlops, maxWeightBits;
    std::vector<std::string> exclude; ///< edge globs
};

using Pins = std::map<EdgeId, Candidate>;

class PlanStore : public QObject {
    Q_OBJECT
public:
    PlanStore(std::shared_ptr<Engine> engine, Lanes *lanes, QObject *parent = nullptr);
    void reset(std::shared_ptr<const Opened> opened, const QString &file);

    const Pins &pins() const { return m_pins; }
    void setPins(Pins pins); ///< called by undo commands only; an existing plan becomes stale
    const std::shared_ptr<const Plan> &plan() const { return m_plan; }
    bool stale() const { return m_stale; }             ///< pins changed after the plan was made
    const QString &file() const { return m_file; }     ///< manifest on disk, empty while unsaved
    const QString &report() const { return m_report; } ///< what the last action said, HTML
    const std::shared_ptr<const VerifyResult> &verification() const { return m_verification; }
    const QString &running() const { return m_running; } ///< title of the action in progress, empty when none

    void make(const PlanSettings &settings, const std::vector<Candidate> &tryCandidates);
    void save(const QString &yamlFile);
    void apply(const QString &checkpointIn, const QString &out);
    void verify(const QString &checkpointIn, const QString &transformed);

    /// Candidates and pins of a request: the preset or the Try tab, plus one named candidate per distinct pin.
    static Expected<PlanOptions> optionsFor(const PlanSettings &settings, const Pins &pins,
                                            const std::vector<Candidate> &tryCandidates);

signals:
    void planChanged();
    void reportChanged();

private:
    void setReport(const QString &html);
    void begin(const QString &title);

    std::shared_ptr<Engine> m_engine;
    Lanes *m_lanes;
    std::shared_ptr<const Opened> m_opened;
    QString m_dumpFile, m_file, m_report, m_running;
    Pins m_pins;
    std::shared_ptr<const Plan> m_plan;
    std::shared_ptr<const VerifyResult> m_verification;
    bool m_stale = false;
};

} // namespace planish
