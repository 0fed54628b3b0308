// What the window works on: engine, opened file, lanes, selection, stores and the undo stack. Requests are calls, news are
// signals. Lives in the GUI thread and never waits; it touches no file itself.
#pragma once

#include <memory>
#include <optional>

#include <QObject>
#include <QUndoStack>

#include "core/run/engine.h"
#include "views/models/candidate_list_model.h"
#include "views/models/compare_store.h"
#include "views/models/evaluation_store.h"
#include "views/models/geometry_store.h"
#include "views/models/lanes.h"
#include "views/models/plan_store.h"
#include "views/models/selection.h"

namespace planish {

/// A slider that is still held down, or a value that stands.
enum class EditPhase { Dragging, Settled };

class Session : public QObject {
    Q_OBJECT
public:
    explicit Session(std::shared_ptr<Engine> engine, QObject *parent = nullptr);
    ~Session() override; ///< joins the lanes before the stores go

    const std::shared_ptr<Engine> &engine() const { return m_engine; }
    const std::shared_ptr<const Opened> &opened() const { return m_opened; } ///< null while nothing is open
    const OpenRequest &openRequest() const { return m_request; }             ///< of the opened file
    const Edge *currentEdge() const;
    Lanes *lanes() { return m_lanes.get(); }
    Selection *selection() { return &m_selection; }
    GeometryStore *geometry() { return &m_geometry; }
    EvaluationStore *evaluations() { return &m_evaluations; }
    CandidateListModel *candidates() { return &m_candidates; }
    CompareStore *comparisons() { return &m_comparisons; }
    PlanStore *plan() { return &m_plan; }
    QUndoStack *undoStack() { return &m_undo; }

    void open(const QString &file, const QString &weights);
    /// Selects what a text names: an edge glob or short form, with `:CHANNEL` behind it ("L12.down:3721").
    Expected<void> find(const QString &text);

    // Edits of the Try tab; each is one undo command, a drag merges into one.
    void editCandidate(int index, const Candidate &candidate, EditPhase phase);
    void editSpecs(const QuantSpec &act, const QuantSpec &weight);
    void addCandidate(const Candidate &candidate);
    void removeCandidate(int index);
    void
    adoptFromSweep(double value); ///< the current sweep's parameter of the current candidate, marked as chosen on held-out rows
    /// Pins the current candidate on the current edge; refused while it is red, not exact yet, or analysis only.
    Expected<void> pinCurrent();
    Expected<void> canPin(int index) const;
    void unpin(const EdgeId &edge);

    /// Asks for every candidate on the current edge again.
    void evaluateAll();

signals:
    void openStarted(const QString &file);
    void openedChanged();
    void openFailed(const QString &message);

private:
    void took(std::shared_ptr<const Opened> opened, const OpenRequest &request);
    void setCandidates(std::vector<Candidate> candidates, int current, const QString &what, EditPhase phase);
    void candidatesEdited();

    std::shared_ptr<Engine> m_engine;
    std::shared_ptr<const Opened> m_opened;
    OpenRequest m_request;
    std::unique_ptr<Lanes> m_lanes;
    Selection m_selection;
    GeometryStore m_geometry;
    EvaluationStore m_evaluations;
    CandidateListModel m_candidates;
    CompareStore m_comparisons;
    PlanStore m_plan;
    QUndoStack m_undo;
    int m_gesture = 0; ///< number of the drag in progress: commands of one gesture merge
    EditPhase m_phase = EditPhase::Settled;
};

} // namespace planish
