#include <QFont>
#include <QSignalSpy>
#include <QSortFilterProxyModel>
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/tiny_dump.h"
#include "views/models/comparison_model.h"
#include "views/models/session.h"

using namespace planish;

class TestCompare : public QObject {
    Q_OBJECT
    QTemporaryDir m_folder;
    QString m_file;
    std::shared_ptr<Engine> m_engine;

    void open(Session &session)
    {
        session.open(m_file, {});
        QTRY_VERIFY_WITH_TIMEOUT(session.opened() != nullptr && session.lanes()->idle(), 60000);
    }
    void compare(Session &session, const CompareSettings &settings)
    {
        session.comparisons()->start(settings, session.selection()->edge(), session.candidates()->candidates(),
                                     session.evaluations()->options());
        QTRY_VERIFY_WITH_TIMEOUT(!session.comparisons()->running() && session.lanes()->idle(), 60000);
    }

private slots:
    void initTestCase()
    {
        m_file = QString::fromStdString(test::writeTinyDump(m_folder.path().toStdString()));
        m_engine = Engine::create({}).value();
    }

    void theNumbersAreTheEngines()
    {
        Session session(m_engine);
        open(session);
        compare(session, {"w8a8", Effort::Quick, CompareScope::Edge});
        const EdgeId edge = session.selection()->edge();
        const auto candidates = presetCandidates("w8a8", Effort::Quick).value();
        const auto expected =
            m_engine->compare(*session.opened(), {.edges = {edge.value}, .candidates = candidates, .options = {}}, {}, {});
        QVERIFY(expected.has_value());
        const EdgeComparison *shown = session.comparisons()->edge(edge);
        QVERIFY(shown);
        QCOMPARE(shown->evaluations.size(), expected->edges[0].evaluations.size());
        for (std::size_t i = 0; i < shown->evaluations.size(); ++i) {
            QCOMPARE(measureOf(shown->evaluations[i], ComparisonMeasure::Error),
                     measureOf(expected->edges[0].evaluations[i], ComparisonMeasure::Error));
        }
        QCOMPARE(shown->ranking.size(), expected->edges[0].ranking.size());
        QCOMPARE(shown->ranking.front().name, expected->edges[0].ranking.front().name);
    }

    void theTableMarksTheBestAndSortsByNumber()
    {
        Session session(m_engine);
        open(session);
        compare(session, {"w8a8", Effort::Quick, CompareScope::Edge});
        ComparisonModel model;
        model.setEdge(session.comparisons()->comparison(), session.selection()->edge());
        QSortFilterProxyModel sorted;
        sorted.setSourceModel(&model);
        sorted.setSortRole(ComparisonModel::SortRole);
        sorted.sort(ComparisonModel::FirstMeasure);
        double before = 0;
        int bold = 0;
        for (int r = 0; r < sorted.rowCount(); ++r) {
            const QModelIndex cell = sorted.index(r, ComparisonModel::FirstMeasure);
            const double error = cell.data(ComparisonModel::SortRole).toDouble();
            QVERIFY(error >= before);
            before = error;
            bold += cell.data(Qt::FontRole).value<QFont>().bold() ? 1 : 0;
        }
        QVERIFY(sorted.rowCount() > 5);
        QVERIFY(bold >= 1);
        QVERIFY(sorted.index(0, ComparisonModel::FirstMeasure).data(Qt::FontRole).value<QFont>().bold());
        QVERIFY(!sorted.index(sorted.rowCount() - 1, ComparisonModel::FirstMeasure).data(Qt::FontRole).value<QFont>().bold());
    }

    void everyEdgeOfTheScopeIsComparedAndTotalled()
    {
        Session session(m_engine);
        open(session);
        std::size_t withWeights = 0;
        for (const Edge &edge : session.opened()->graph.edges) {
            withWeights += !edge.consumers.empty() && edge.consumers.front().present ? 1 : 0;
        }
        compare(session, {{}, Effort::Quick, CompareScope::All}); // the candidates of the Try tab
        const auto comparison = session.comparisons()->comparison();
        QCOMPARE(comparison->edges.size(), withWeights);
        QCOMPARE(comparison->totals.size(), std::size_t(session.candidates()->size()));
        QCOMPARE(comparison->edges.front().edge, session.selection()->edge());
    }

    void anInterruptedComparisonResumes()
    {
        Session session(m_engine);
        open(session);
        session.comparisons()->setStateFolder(m_folder.filePath("state"));
        QSignalSpy changed(session.comparisons(), &CompareStore::comparisonChanged);
        const CompareSettings all{"w8a8", Effort::Quick, CompareScope::All};
        session.comparisons()->start(all, session.selection()->edge(), {}, session.evaluations()->options());
        session.comparisons()->stop();
        QTRY_VERIFY_WITH_TIMEOUT(!session.comparisons()->running() && session.lanes()->idle(), 60000);
        QVERIFY(session.comparisons()->message().contains("resumes"));
        compare(session, all);
        QVERIFY(session.comparisons()->message().isEmpty());
        const auto first = session.comparisons()->comparison();
        compare(session, all); // everything is read back now
        const auto second = session.comparisons()->comparison();
        QCOMPARE(second->edges.size(), first->edges.size());
        for (std::size_t i = 0; i < first->edges.size(); ++i) {
            QCOMPARE(second->edges[i].ranking.front().name, first->edges[i].ranking.front().name);
            QCOMPARE(measureOf(second->edges[i].evaluations[0], ComparisonMeasure::Error),
                     measureOf(first->edges[i].evaluations[0], ComparisonMeasure::Error));
        }
        QVERIFY(QDir(m_folder.filePath("state")).exists());
    }

    void histogramsShareOneAxisAndEveryValueIsCounted()
    {
        Session session(m_engine);
        open(session);
        compare(session, {"w8a8", Effort::Quick, CompareScope::Edge});
        session.comparisons()->requestShapes(session.selection()->edge(), "none", "hadamard");
        QTRY_VERIFY_WITH_TIMEOUT(session.comparisons()->shapes() != nullptr, 60000);
        const ValueShapes &shapes = *session.comparisons()->shapes();
        QCOMPARE(shapes.shares.size(), std::size_t(2));
        for (std::size_t c = 0; c < 2; ++c) {
            double sum = shapes.below[c];
            for (const double share : shapes.shares[c]) {
                sum += share;
            }
            QVERIFY(qAbs(sum - 1) < 1e-9);
            QVERIFY(shapes.maxima[c] <= shapes.edges.back());
        }
        QVERIFY(shapes.maxima[1] < shapes.maxima[0]); // the rotation spreads the planted outlier
    }

    void anotherFileForgetsTheComparison()
    {
        Session session(m_engine);
        open(session);
        compare(session, {"o1", Effort::Quick, CompareScope::Edge});
        QVERIFY(!session.comparisons()->comparison()->edges.empty());
        open(session);
        session.open(m_file, {});
        QTRY_VERIFY_WITH_TIMEOUT(session.comparisons()->comparison()->edges.empty(), 60000);
    }
};

QTEST_MAIN(TestCompare)
#include "tst_compare.moc"
