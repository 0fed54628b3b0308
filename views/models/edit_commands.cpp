#include "views/models/edit_commands.h"

#include "views/models/candidate_list_model.h"

namespace planish {

CandidatesCommand::CandidatesCommand(CandidateListModel *model, State before, State after, int gesture, const QString &what)
    : QUndoCommand(what), m_model(model), m_before(std::move(before)), m_after(std::move(after)), m_gesture(gesture)
{
}

void CandidatesCommand::undo()
{
    m_model->replaceAll(m_before.candidates, m_before.current);
}

void CandidatesCommand::redo()
{
    m_model->replaceAll(m_after.candidates, m_after.current);
}

bool CandidatesCommand::mergeWith(const QUndoCommand *other)
{
    const auto *next = dynamic_cast<const CandidatesCommand *>(other);
    if (next == nullptr || m_gesture == 0 || next->m_gesture != m_gesture) {
        return false;
    }
    m_after = next->m_after;
    return true;
}

PinsCommand::PinsCommand(PlanStore *store, Pins after, const QString &what)
    : QUndoCommand(what), m_store(store), m_before(store->pins()), m_after(std::move(after))
{
}

void PinsCommand::undo()
{
    m_store->setPins(m_before);
}

void PinsCommand::redo()
{
    m_store->setPins(m_after);
}

} // namespace planish
