#include "views/panels/provenance.h"

#include <QCoreApplication>

#include "views/models/candidate_text.h"
#include "views/models/number_text.h"
#include "views/models/status_text.h"

namespace planish {

QString provenanceText(Session *session, ProvenanceOf what)
{
    QStringList parts{toQString(session->openRequest().file)};
    if (const Edge *edge = session->currentEdge()) {
        parts << toQString(edge->id.value) << QStringLiteral("basis %1").arg(toQString(edge->basis));
    }
    if (what == ProvenanceOf::Candidate) {
        const int current = session->candidates()->current();
        parts << toQString(candidateLabel(session->candidates()->at(current)));
        const EvaluationSlot *slot = session->evaluations()->slot(current);
        if (slot != nullptr && slot->shown) {
            parts << toQString(canonicalText(slot->shown->act, Role::Activation)) + " x " +
                         toQString(canonicalText(slot->shown->weight, Role::Weight))
                  << splitSentence(slot->shown->rows, toQString(slot->shown->splitUnit));
        }
    } else if (const auto analysis = session->geometry()->edge(session->selection()->edge()); analysis && analysis->statistics) {
        parts << countText(static_cast<double>(analysis->statistics->tokens)) + QStringLiteral(" counted rows, all parts");
    }
    parts << QStringLiteral("Planish ") + QCoreApplication::applicationVersion();
    return parts.join(QStringLiteral(" · "));
}

} // namespace planish
