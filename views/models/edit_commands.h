// Undo as a list of values: a command keeps the candidate list (or the pins) before and after.
#pragma once

#include <vector>

#include <QUndoCommand>

#include "core/methods/method_table.h"
#include "views/models/plan_store.h"

namespace planish {

class CandidateListModel;

class CandidatesCommand : public QUndoCommand {
public:
    struct State {
        std::vector<Candidate> candidates;
        int current = 1;
    };
    CandidatesCommand(CandidateListModel *model, State before, State after, int gesture, const QString &what);
    void undo() override;
    void redo() override;
    int id() const override { return 1; }
    bool mergeWith(const QUndoCommand *other) override; ///< commands of one drag become one

private:
    CandidateListModel *m_model;
    State m_before, m_after;
    int m_gesture; ///< 0: never merges
};

class PinsCommand : public QUndoCommand {
public:
    PinsCommand(PlanStore *store, Pins after, const QString &what);
    void undo() override;
    void redo() override;

private:
    PlanStore *m_store;
    Pins m_before, m_after;
};

} // namespace planish
