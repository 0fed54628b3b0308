// From the slider to the number on screen and back.
#include <QSlider>
#include <QTemporaryDir>
#include <QTest>

#include "app/main_window.h"
#include "tests/support/tiny_dump.h"
#include "views/models/candidate_text.h"
#include "views/models/number_text.h"

using namespace planish;

class TestAlphaPath : public QObject {
    Q_OBJECT
    QTemporaryDir m_folder;
    std::shared_ptr<Engine> m_engine;
    std::unique_ptr<MainWindow> m_window;

    QString shownError()
    {
        const CandidateListModel *model = m_window->session()->candidates();
        return model->index(1, CandidateListModel::ErrorColumn).data().toString();
    }
    double engineError(const std::string &alpha)
    {
        Session *session = m_window->session();
        Candidate candidate = session->candidates()->at(1);
        setValue(candidate.chain.front(), "alpha", alpha);
        const auto result = m_engine->evaluate(*session->opened(), {.edges = {session->selection()->edge().value}, .candidate = candidate}, {},
                                               [](const ProgressReport &) {});
        return result && result->front().output ? result->front().output->relativeFrobenius : -1.0;
    }
    void idle() { QTRY_VERIFY_WITH_TIMEOUT(m_window->session()->lanes()->idle(), 60000); }

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
        m_window->show();
        m_window->openFile(QString::fromStdString(test::writeTinyDump(m_folder.path().toStdString())));
        QTRY_VERIFY_WITH_TIMEOUT(m_window->session()->opened() != nullptr, 60000);
        idle();
        m_window->showTab(Tab::Try);
    }

    void draggingTheSliderShowsTheEnginesNumber()
    {
        auto *slider = m_window->findChild<QSlider *>("slider:alpha");
        QVERIFY(slider != nullptr);
        const QString before = shownError();
        QCOMPARE(before, shortNumber(engineError("0.5")));
        slider->setSliderDown(true);
        for (const int position : {11, 13, 15}) {
            slider->setValue(position);
        }
        slider->setSliderDown(false);
        idle();
        QCOMPARE(valueOf(m_window->session()->candidates()->at(1).chain.front(), "alpha"), std::string("0.75"));
        QCOMPARE(shownError(), shortNumber(engineError("0.75")));
        QVERIFY(shownError() != before);
        QCOMPARE(m_window->session()->undoStack()->count(), 1);
    }

    void undoReturnsTheNumber()
    {
        m_window->session()->undoStack()->undo();
        idle();
        QCOMPARE(shownError(), shortNumber(engineError("0.5")));
        QCOMPARE(m_window->findChild<QSlider *>("slider:alpha")->value(), 10);
        m_window->session()->undoStack()->redo();
        idle();
        QCOMPARE(shownError(), shortNumber(engineError("0.75")));
    }
};

QTEST_MAIN(TestAlphaPath)
#include "tst_alpha_path.moc"
