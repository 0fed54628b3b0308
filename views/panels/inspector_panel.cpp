#include "views/panels/inspector_panel.h"

#include <algorithm>

#include <QScrollBar>
#include <QVBoxLayout>

#include "views/panels/inspector_text.h"

namespace planish {

InspectorPanel::InspectorPanel(Session *session, QWidget *parent) : QWidget(parent), m_session(session), m_text(new QTextBrowser)
{
    m_text->setOpenLinks(false);
    m_text->setAccessibleName(QStringLiteral("Inspector"));
    m_text->setFrameShape(QFrame::NoFrame);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(4, 4, 4, 4);
    layout->addWidget(m_text);
    connect(session, &Session::openedChanged, this, &InspectorPanel::refresh);
    connect(session->selection(), &Selection::edgeChanged, this, &InspectorPanel::refresh);
    connect(session->selection(), &Selection::channelChanged, this, &InspectorPanel::refresh);
    connect(session->selection(), &Selection::tokenChanged, this, &InspectorPanel::refresh);
    connect(session->geometry(), &GeometryStore::edgeAnalysed, this, [this](const QString &edge) {
        if (edge.toStdString() == m_session->selection()->edge().value) {
            refresh();
        }
    });
    connect(session->evaluations(), &EvaluationStore::evaluationChanged, this, [this] {
        if (m_page == InspectorPage::Candidate) {
            refresh();
        }
    });
    connect(session->candidates(), &CandidateListModel::currentChanged, this, &InspectorPanel::refresh);
    connect(session->plan(), &PlanStore::planChanged, this, &InspectorPanel::refresh);
}

void InspectorPanel::setPage(InspectorPage page)
{
    m_page = page;
    refresh();
}

void InspectorPanel::refresh()
{
    const int scroll = m_text->verticalScrollBar()->value();
    m_text->setHtml(html());
    m_text->verticalScrollBar()->setValue(scroll);
}

QString InspectorPanel::html() const
{
    const Edge *edge = m_session->currentEdge();
    if (edge == nullptr) {
        return QStringLiteral("<p>Nothing is selected.</p>");
    }
    const EvaluationSlot *slot = m_session->evaluations()->slot(m_session->candidates()->current());
    const Evaluation *shown = slot != nullptr && slot->shown ? slot->shown.get() : nullptr;
    const auto analysis = m_session->geometry()->edge(edge->id);
    const Selection *selection = m_session->selection();
    QString picked;
    if (analysis) {
        picked = channelHtml(*edge, *analysis, selection->channel(), shown) +
                 tokenHtml(*m_session->opened(), *edge, *analysis, selection->token());
    }
    if (m_page == InspectorPage::Candidate) {
        if (shown == nullptr) {
            return QStringLiteral("<h4>%1</h4><p>Waiting for the first result.</p>").arg(QString::fromStdString(edge->id.value)) +
                   picked;
        }
        const QString stale =
            slot->current() ? QString() : QStringLiteral("<p><i>These numbers answer an older request.</i></p>");
        return stale + evaluationHtml(*shown) + picked;
    }
    if (m_page == InspectorPage::Plan && m_session->plan()->plan()) {
        const auto &assignments = m_session->plan()->plan()->assignments;
        const auto at = std::ranges::find_if(assignments, [&](const Assignment &a) { return a.edge == edge->id; });
        if (at != assignments.end()) {
            return assignmentHtml(*at);
        }
    }
    return picked + edgeHtml(*m_session->opened(), *edge, analysis.get());
}

} // namespace planish
