// What the window shows on the sample equals what the engine (and so the command line) says, edge by edge.
#include <QTest>

#include "app/main_window.h"
#include "views/models/edge_measures.h"
#include "views/models/number_text.h"

using namespace planish;

class TestWindowNumbers : public QObject {
    Q_OBJECT
    std::shared_ptr<Engine> m_engine;
    std::unique_ptr<MainWindow> m_window;
    void idle() { QTRY_VERIFY_WITH_TIMEOUT(m_window->session()->lanes()->idle(), 240000); }

public:
    static void initMain()
    {
        if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) {
            qputenv("QT_QPA_PLATFORM", "offscreen");
        }
    }

private slots:
    void initTestCase()
    {
        const auto engine = Engine::create({});
        QVERIFY(engine.has_value());
        m_engine = *engine;
        m_window = std::make_unique<MainWindow>(m_engine, Remember::No);
        m_window->openFile(QStringLiteral(PLANISH_SAMPLE_DIR "/smollm2.h5"));
        QTRY_VERIFY_WITH_TIMEOUT(m_window->session()->opened() != nullptr, 60000);
        idle();
    }

    void treeAndMapShowTheRatiosOfEveryEdge()
    {
        const auto opened = m_window->session()->opened();
        AnalyzeRequest request;
        request.findings = false;
        const auto expected = m_engine->analyze(*opened, request, {}, [](const ProgressReport &) {});
        QVERIFY(expected.has_value());
        QVERIFY(expected->edges.size() >= 60);
        const PlotTable map = m_window->map()->depthMap()->table();
        for (const EdgeAnalysis &edge : expected->edges) {
            const double ratio = edge.statistics->maxAbs / edge.statistics->medianAbs;
            const QModelIndex index = m_window->edges()->model()->indexOf(edge.edge);
            QVERIFY2(index.isValid(), edge.edge.value.c_str());
            QCOMPARE(index.siblingAtColumn(EdgeTreeModel::SeverityColumn).data().toString(), shortNumber(ratio));
            const auto row = std::find_if(map.rows.begin(), map.rows.end(), [&](const QStringList &r) { return r[0].toStdString() == edge.edge.value; });
            QVERIFY(row != map.rows.end());
            QCOMPARE((*row)[3], fullNumber(ratio));
        }
    }

    void candidatesShowTheErrorsOfEveryEdgeWithWeights()
    {
        Session *session = m_window->session();
        int evaluated = 0;
        for (const Edge &edge : session->opened()->graph.edges) {
            if (weightsState(edge) != "present") {
                continue;
            }
            session->selection()->setEdge(edge.id);
            idle();
            for (int i = 0; i < session->candidates()->size(); ++i) {
                const auto expected = m_engine->evaluate(*session->opened(), {.edges = {edge.id.value}, .candidate = session->candidates()->at(i)}, {},
                                                         [](const ProgressReport &) {});
                QVERIFY2(expected.has_value(), edge.id.value.c_str());
                const Evaluation &e = expected->front();
                const QString shown = session->candidates()->index(i, CandidateListModel::ErrorColumn).data().toString();
                QCOMPARE(shown, e.output ? shortNumber(e.output->relativeFrobenius) : QStringLiteral("-"));
                evaluated += e.output ? 1 : 0;
            }
        }
        QVERIFY(evaluated >= 8); // identity and SmoothQuant on the four edges of layers 2 and 28
    }

    void edgesWithoutWeightsSayWhy()
    {
        Session *session = m_window->session();
        const auto &edges = session->opened()->graph.edges;
        const auto bare = std::find_if(edges.begin(), edges.end(), [](const Edge &e) { return weightsState(e) == "absent"; });
        QVERIFY(bare != edges.end());
        session->selection()->setEdge(bare->id);
        idle();
        const QString status = session->candidates()->index(0, CandidateListModel::StatusColumn).data().toString();
        QVERIFY2(status.contains(QString::fromStdString(bare->id.value)), qPrintable(status));
        QVERIFY(!session->canPin(1).has_value());
    }
};

QTEST_MAIN(TestWindowNumbers)
#include "tst_window_numbers.moc"
