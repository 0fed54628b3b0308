#include "app/tour.h"

#include <functional>

#include <QDir>
#include <QEventLoop>
#include <QTextStream>
#include <QTimer>

#include "app/help.h"
#include "app/main_window.h"
#include "views/charts/plot_export.h"
#include "views/models/candidate_text.h"
#include "views/models/edge_measures.h"
#include "views/models/number_text.h"
#include "views/models/status_text.h"

namespace planish {

namespace {

constexpr int kPatience = 600000; // ms a screen may take: a preset plan on a slow machine
constexpr int kSettle = 60;       // ms for layouts and paints

/// One walk through the window. Runs an event loop of its own while it waits; nothing is forced.
class Walk {
public:
    Walk(const std::shared_ptr<Engine> &engine, QDir folder) : m_folder(std::move(folder)), m_window(engine, Remember::No) { m_window.resize(1280, 720); }

    Expected<void> run(const QString &file, const QString &weights);

private:
    void wait(int milliseconds)
    {
        QEventLoop loop;
        QTimer::singleShot(milliseconds, &loop, &QEventLoop::quit);
        loop.exec();
    }
    /// Waits until all lanes are idle; false when they are not in time.
    bool settle()
    {
        wait(kSettle);
        if (!m_window.session()->lanes()->idle()) {
            QEventLoop loop;
            QObject::connect(m_window.session()->lanes(), &Lanes::becameIdle, &loop, &QEventLoop::quit);
            QTimer::singleShot(kPatience, &loop, &QEventLoop::quit);
            loop.exec();
        }
        wait(kSettle);
        return m_window.session()->lanes()->idle();
    }
    void shot(const QString &name) { shot(name, &m_window); }
    void shot(const QString &name, QWidget *widget)
    {
        settle();
        const QString path = m_folder.filePath(name + ".png");
        if (!widget->grab().save(path) && m_failure.isEmpty()) {
            m_failure = path;
        }
        m_text += "\n[" + name + ".png]\n";
    }
    void note(const QString &key, const QString &shown, const QString &full = {})
    {
        m_text += key + '\t' + shown + (full.isEmpty() ? QString() : '\t' + full) + '\n';
    }
    void noteTable(const QAbstractItemModel *model);
    void pickTrial();
    void map();
    void geometry();
    void tryScreen();
    void sweep();
    void compare();
    void plan();
    void darkAndHelp();

    QDir m_folder;
    MainWindow m_window;
    QString m_text, m_failure;
};

void Walk::noteTable(const QAbstractItemModel *model)
{
    for (int r = 0; r < model->rowCount(); ++r) {
        QStringList cells;
        for (int c = 0; c < model->columnCount(); ++c) {
            cells << model->index(r, c).data().toString();
        }
        m_text += cells.join('\t') + '\n';
    }
}

void Walk::map()
{
    m_window.showTab(Tab::Map);
    shot(QStringLiteral("map"));
    for (const QStringList &row : m_window.map()->depthMap()->table().rows) {
        note(row[0], shortNumber(row[3].toDouble()), row[3]);
    }
    m_window.map()->setView(MapView::LayerChannel);
    shot(QStringLiteral("map_layers"));
    m_window.map()->setView(MapView::Offenders);
    shot(QStringLiteral("map_worst_first"));
    m_window.map()->setView(MapView::Depth);
}

/// The edge with the largest max/median that has weights: where a transform has something to do.
void Walk::pickTrial()
{
    Session *session = m_window.session();
    double worst = -1;
    EdgeId pick;
    for (const Edge &edge : session->opened()->graph.edges) {
        const auto analysis = session->geometry()->edge(edge.id);
        const double ratio = analysis ? measureOf(*analysis, EdgeMeasure::MaxToMedian).value_or(0) : -1;
        if (ratio > worst && weightsState(edge) == "present") {
            worst = ratio;
            pick = edge.id;
        }
    }
    if (!pick.value.empty()) {
        session->selection()->setEdge(pick);
    }
}

void Walk::geometry()
{
    Session *session = m_window.session();
    m_window.showTab(Tab::Geometry);
    settle();
    const auto analysis = session->geometry()->edge(session->selection()->edge());
    if (analysis && analysis->statistics) {
        session->selection()->setChannel(analysis->statistics->argmaxChannel);
        session->selection()->setToken(analysis->statistics->argmaxRow);
    }
    shot(QStringLiteral("geometry"));
    if (analysis && analysis->statistics) {
        note("edge", toQString(analysis->edge.value));
        for (const EdgeMeasureRow &row : edgeMeasures()) {
            const auto value = measureOf(*analysis, row.measure);
            note(QString::fromUtf8(row.key.data(), static_cast<qsizetype>(row.key.size())), shortNumber(value), value ? fullNumber(*value) : QString());
        }
        note("argmax", QStringLiteral("row %1, channel %2").arg(analysis->statistics->argmaxRow).arg(analysis->statistics->argmaxChannel));
        noteTable(m_window.geometryPanel()->findings()->model());
    }
}

void Walk::tryScreen()
{
    Session *session = m_window.session();
    m_window.showTab(Tab::Try);
    m_window.tryPanel()->setPage(TryPage::Profile);
    shot(QStringLiteral("try"));
    note("edge", toQString(session->selection()->edge().value));
    for (int i = 0; i < session->candidates()->size(); ++i) {
        const EvaluationSlot *slot = session->evaluations()->slot(i);
        const QString name = toQString(candidateLabel(session->candidates()->at(i)));
        if (slot != nullptr && slot->shown && slot->shown->output) {
            note(name, shortNumber(slot->shown->output->relativeFrobenius), fullNumber(slot->shown->output->relativeFrobenius));
        }
        note(name, statusSentence(slot));
    }
}

void Walk::sweep()
{
    m_window.tryPanel()->setPage(TryPage::Sweep);
    m_window.tryPanel()->sweep()->start();
    shot(QStringLiteral("sweep"));
    for (const QStringList &row : m_window.tryPanel()->sweep()->chart()->table().rows) {
        note(shortNumber(row[0].toDouble()), shortNumber(row[1].toDouble()), row[1]);
    }
}

void Walk::compare()
{
    ComparePanel *panel = m_window.tryPanel()->compare();
    m_window.tryPanel()->setPage(TryPage::Compare);
    panel->choose({"w8a8", Effort::Quick, CompareScope::Site});
    panel->setPicture(ComparePicture::Pareto);
    panel->start();
    shot(QStringLiteral("compare"));
    noteTable(panel->table()->model());
    panel->setPicture(ComparePicture::Histograms);
    shot(QStringLiteral("compare_histograms"));
    panel->setPicture(ComparePicture::Layers);
    shot(QStringLiteral("compare_layers"));
    for (const LayerChart *chart : panel->layers()->charts()) {
        for (const QStringList &row : chart->table().rows) {
            note(row[0] + ", layer " + row[1], shortNumber(row[2].toDouble()), row[2]);
        }
    }
}

void Walk::plan()
{
    Session *session = m_window.session();
    m_window.showTab(Tab::Plan);
    m_window.planPanel()->choosePreset({});
    session->pinCurrent();
    shot(QStringLiteral("plan_pinned"));
    m_window.planPanel()->make();
    if (!settle() || !session->plan()->plan()) {
        // The pinned candidate may need an online operator on this edge; the refusal is worth a picture, the plan is made without it.
        shot(QStringLiteral("plan_refused"));
        note("plan", session->plan()->report());
        session->unpin(session->selection()->edge());
        m_window.planPanel()->make();
    }
    shot(QStringLiteral("plan"));
    noteTable(m_window.planPanel()->model());
    if (session->plan()->plan()) {
        session->plan()->save(m_folder.filePath(QStringLiteral("plan.yaml")));
        shot(QStringLiteral("plan_saved"));
        note("saved", session->plan()->file());
        m_window.planPanel()->setRule(Choose::Within, QStringLiteral("20000"), QStringLiteral("8.5"), QStringLiteral("layers.0.*"));
        shot(QStringLiteral("plan_rule"));
    } else {
        note("plan", session->plan()->report());
    }
}

void Walk::darkAndHelp()
{
    const Theme before = m_window.settings().theme;
    m_window.setTheme(Theme::Dark);
    const std::pair<Tab, const char *> tabs[] = {{Tab::Map, "map"}, {Tab::Geometry, "geometry"}, {Tab::Try, "try"}, {Tab::Plan, "plan"}};
    m_window.tryPanel()->setPage(TryPage::Profile);
    for (const auto &[tab, name] : tabs) {
        m_window.showTab(tab);
        shot(QString::fromLatin1(name) + QStringLiteral("_dark"));
    }
    m_window.setTheme(before);
    QWidget *help = showHelp(&m_window, HelpPage::Numbers);
    shot(QStringLiteral("help_numbers"), help);
    help->close();
    help = showHelp(&m_window, HelpPage::FailureLab);
    shot(QStringLiteral("help_failure_lab"), help);
    help->close();
}

Expected<void> Walk::run(const QString &file, const QString &weights)
{
    m_window.show();
    m_text = QStringLiteral("Planish tour of %1\nname, shown, full value\n").arg(file);
    shot(QStringLiteral("start"));
    QString problem;
    QObject::connect(m_window.session(), &Session::openFailed, &m_window, [&problem](const QString &text) { problem = text; });
    m_window.openFile(file, weights);
    if (!settle()) {
        return machineError(file.toStdString(), "the tour waited too long", "a file this machine can analyse");
    }
    if (!m_window.session()->opened()) {
        return dataError(file.toStdString(), problem.toStdString(), "a dump that opens");
    }
    map();
    pickTrial();
    geometry();
    tryScreen();
    sweep();
    compare();
    plan();
    darkAndHelp();
    const auto saved = saveText(m_folder.filePath(QStringLiteral("tour.txt")), m_text);
    if (!saved) {
        return saved;
    }
    if (!m_failure.isEmpty()) {
        return machineError(m_failure.toStdString(), "cannot be written", "a writable folder with free space");
    }
    return {};
}

} // namespace

Expected<void> runTour(const std::shared_ptr<Engine> &engine, const QString &folder, const QString &file, const QString &weights)
{
    if (!QDir().mkpath(folder)) {
        return machineError(folder.toStdString(), "cannot be created", "a writable folder");
    }
    const QString opened = file.isEmpty() ? sampleFile() : file;
    if (opened.isEmpty()) {
        return usageError("--tour", "the sample is not beside the program", "a FILE to visit");
    }
    return Walk(engine, QDir(folder)).run(opened, weights);
}

} // namespace planish
