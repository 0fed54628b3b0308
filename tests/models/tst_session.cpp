#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/tiny_dump.h"
#include "views/models/candidate_text.h"
#include "views/models/edge_measures.h"
#include "views/models/plan_text.h"
#include "views/models/session.h"
#include "views/models/status_text.h"

using namespace planish;

class TestSession : public QObject {
    Q_OBJECT
    QTemporaryDir m_folder;
    QString m_file;
    std::shared_ptr<Engine> m_engine;

    void open(Session &session)
    {
        session.open(m_file, {});
        QTRY_VERIFY_WITH_TIMEOUT(session.opened() != nullptr && session.lanes()->idle(), 60000);
    }

private slots:
    void initTestCase()
    {
        m_file = QString::fromStdString(test::writeTinyDump(m_folder.path().toStdString()));
        auto engine = Engine::create({});
        QVERIFY2(engine.has_value(), engine ? "" : toText(engine.error()).c_str());
        m_engine = *engine;
    }

    void openingReturnsAtOnceAndSelectsTheFirstEdge()
    {
        Session session(m_engine);
        QSignalSpy opened(&session, &Session::openedChanged);
        session.open(m_file, {});
        QCOMPARE(opened.count(), 0); // nothing blocks: the file is read in the io lane
        QTRY_COMPARE_WITH_TIMEOUT(opened.count(), 1, 60000);
        QCOMPARE(session.selection()->edge().value, std::string("layers.0.attn_in"));
        QTRY_VERIFY_WITH_TIMEOUT(session.lanes()->idle(), 60000);
    }

    void anAbsentFileSaysSo()
    {
        Session session(m_engine);
        QSignalSpy failed(&session, &Session::openFailed);
        session.open(m_folder.filePath("absent.h5"), {});
        QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, 60000);
        QVERIFY(failed.first().first().toString().contains("absent.h5"));
        QVERIFY(!session.opened());
    }

    void geometryEqualsTheEngine()
    {
        Session session(m_engine);
        open(session);
        const auto expected = m_engine->analyze(*session.opened(), {}, {}, [](const ProgressReport &) {});
        QVERIFY(expected.has_value());
        QCOMPARE(session.geometry()->analysed(), expected->edges.size());
        for (const EdgeAnalysis &edge : expected->edges) {
            const auto shown = session.geometry()->edge(edge.edge);
            QVERIFY(shown);
            QCOMPARE(shown->statistics->maxAbs, edge.statistics->maxAbs);
            QCOMPARE(shown->statistics->medianAbs, edge.statistics->medianAbs);
            QCOMPARE(*maxToMedian(*shown->statistics), edge.statistics->maxAbs / edge.statistics->medianAbs);
            QCOMPARE(shown->findings.size(), edge.findings.size());
            QVERIFY(severityOf(*shown) > 0.0 && severityOf(*shown) <= 1.0);
        }
        QVERIFY(session.geometry()->complete());
    }

    void evaluationsEqualTheEngine()
    {
        Session session(m_engine);
        open(session);
        for (const Edge &edge : session.opened()->graph.edges) {
            session.selection()->setEdge(edge.id);
            QTRY_VERIFY_WITH_TIMEOUT(session.lanes()->idle(), 60000);
            for (int i = 0; i < session.candidates()->size(); ++i) {
                const auto expected = m_engine->evaluate(*session.opened(), {.edges = {edge.id.value}, .candidate = session.candidates()->at(i)}, {},
                                                         [](const ProgressReport &) {});
                QVERIFY2(expected.has_value(), expected ? "" : toText(expected.error()).c_str());
                const EvaluationSlot *slot = session.evaluations()->slot(i);
                QVERIFY(slot != nullptr && slot->current());
                QVERIFY2(slot->shown->output.has_value(), slot->shown->reason.c_str());
                QCOMPARE(slot->shown->output->relativeFrobenius, expected->front().output->relativeFrobenius);
                QCOMPARE(lightOf(*slot->shown), Light::Green);
            }
        }
    }

    void oneDragIsOneUndo()
    {
        Session session(m_engine);
        open(session);
        Candidate candidate = session.candidates()->at(1);
        for (const char *alpha : {"0.55", "0.6", "0.65"}) {
            setValue(candidate.chain.front(), "alpha", alpha);
            session.editCandidate(1, candidate, EditPhase::Dragging);
        }
        session.editCandidate(1, candidate, EditPhase::Settled);
        QCOMPARE(session.undoStack()->count(), 1);
        setValue(candidate.chain.front(), "alpha", "0.8");
        session.editCandidate(1, candidate, EditPhase::Settled);
        QCOMPARE(session.undoStack()->count(), 2);
        session.undoStack()->undo();
        QCOMPARE(valueOf(session.candidates()->at(1).chain.front(), "alpha"), std::string("0.65"));
        session.undoStack()->undo();
        QCOMPARE(valueOf(session.candidates()->at(1).chain.front(), "alpha"), std::string("0.5"));
        QTRY_VERIFY_WITH_TIMEOUT(session.lanes()->idle(), 60000);
    }

    void aFinishedExactResultReplacesThePreview()
    {
        Session session(m_engine);
        open(session);
        Candidate candidate = session.candidates()->at(1);
        setValue(candidate.chain.front(), "alpha", "0.7");
        session.editCandidate(1, candidate, EditPhase::Dragging);
        QVERIFY(!session.evaluations()->slot(1)->current());
        session.editCandidate(1, candidate, EditPhase::Settled);
        QTRY_VERIFY_WITH_TIMEOUT(session.lanes()->idle(), 60000);
        QVERIFY(session.evaluations()->slot(1)->current());
        QVERIFY(!session.evaluations()->slot(1)->shown->interval);
    }

    void anUnknownMethodIsRedAndCannotBePinned()
    {
        Session session(m_engine);
        open(session);
        Candidate candidate = session.candidates()->at(1);
        candidate.chain = {{"gamma_migration", {}}}; // needs the producing norm, which this dump has not
        session.editCandidate(1, candidate, EditPhase::Settled);
        QTRY_VERIFY_WITH_TIMEOUT(session.lanes()->idle(), 60000);
        QCOMPARE(lightOf(session.evaluations()->slot(1)), Light::Red);
        const auto pinned = session.pinCurrent();
        QVERIFY(!pinned.has_value());
        QVERIFY(session.plan()->pins().empty());
    }

    void pinsAreUndoneAndReachThePlanOptions()
    {
        Session session(m_engine);
        open(session);
        QVERIFY(session.pinCurrent().has_value());
        const EdgeId edge = session.selection()->edge();
        QCOMPARE(session.plan()->pins().size(), std::size_t(1));
        const auto options = PlanStore::optionsFor({.preset = ""}, session.plan()->pins(), session.candidates()->candidates());
        QVERIFY(options.has_value());
        QCOMPARE(options->pins.front().first, edge.value);
        QCOMPARE(options->pins.front().second, std::string("pinned: smoothquant alpha=0.5"));
        QCOMPARE(options->candidates.back().edges, std::vector<std::string>{edge.value});
        session.undoStack()->undo();
        QVERIFY(session.plan()->pins().empty());
    }

    void theRuleOfTheFormReachesThePlan()
    {
        Session session(m_engine);
        open(session);
        const EdgeId edge = session.selection()->edge();
        PlanSettings settings{.preset = "w8a8", .choose = Choose::Within, .exclude = {edge.value}};
        settings.maxOnlineFlops = 0;
        settings.maxWeightBits = 8.5;
        const auto options = PlanStore::optionsFor(settings, {}, {});
        QVERIFY(options.has_value());
        QCOMPARE(options->choose, Choose::Within);
        QCOMPARE(options->maxOnlineFlops, std::optional<double>(0));
        QCOMPARE(options->maxWeightBits, std::optional<double>(8.5));
        QCOMPARE(options->exclude, std::vector<std::string>{edge.value});
        session.plan()->make(settings, {});
        QTRY_VERIFY_WITH_TIMEOUT(session.plan()->running().isEmpty() && session.lanes()->idle(), 60000);
        QVERIFY2(session.plan()->plan(), qPrintable(session.plan()->report()));
        for (const Assignment &assignment : session.plan()->plan()->assignments) {
            QVERIFY(assignment.edge != edge);
        }
    }

    void searchFindsEdgesAndChannels()
    {
        Session session(m_engine);
        open(session);
        QVERIFY(session.find("L0.down:7").has_value());
        QCOMPARE(session.selection()->edge().value, std::string("layers.0.mlp_down"));
        QCOMPARE(session.selection()->channel(), std::int64_t(7));
        QVERIFY(!session.find("L0.down:99999").has_value());
        QVERIFY(!session.find("nowhere").has_value());
        QTRY_VERIFY_WITH_TIMEOUT(session.lanes()->idle(), 60000);
    }

    void commandLinesQuoteWhatAShellWouldSplit()
    {
        EvaluateRequest request{.edges = {"layers.0.attn_in"}, .candidate = CandidateListModel::startingCandidates().at(1)};
        const QString command = evaluateCommand({.file = "my dump.h5"}, request);
        QCOMPARE(command, QString("planish-cli evaluate 'my dump.h5' --edge layers.0.attn_in --method smoothquant --set alpha=0.5 --act int8:token "
                                  "--weight int8:row"));
    }

    void aSweepMarksItsMinimumAndAdoptingIsLabelled()
    {
        Session session(m_engine);
        open(session);
        session.evaluations()->requestSweep(session.selection()->edge(), session.candidates()->at(1), "alpha", {0.0, 0.5, 1.0});
        QTRY_VERIFY_WITH_TIMEOUT(session.lanes()->idle(), 60000);
        const SweepSlot &sweep = session.evaluations()->sweep();
        QVERIFY(sweep.current());
        QCOMPARE(sweep.shown->evaluations.size(), std::size_t(3));
        session.adoptFromSweep(1.0);
        QCOMPARE(valueOf(session.candidates()->at(1).chain.front(), "alpha"), std::string("1"));
        QCOMPARE(session.candidates()->at(1).selectedOn, std::string("held_out"));
        QTRY_VERIFY_WITH_TIMEOUT(session.lanes()->idle(), 60000);
        QCOMPARE(session.evaluations()->slot(1)->shown->output->relativeFrobenius, sweep.shown->evaluations.back().output->relativeFrobenius);
    }
};

QTEST_GUILESS_MAIN(TestSession)
#include "tst_session.moc"
