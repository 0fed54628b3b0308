#include "app/main_window.h"

#include <QApplication>
#include <QClipboard>
#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QMessageBox>
#include <QMimeData>
#include <QStandardPaths>
#include <QStatusBar>
#include <QStyle>
#include <QTimer>

#include "app/actions.h"
#include "kernels/backend_list.h"
#include "views/charts/chart_style.h"
#include "views/models/candidate_text.h"
#include "views/models/number_text.h"
#include "views/models/status_text.h"

namespace planish {

namespace {
constexpr int kMessageTime = 12000; // ms a sentence stays in the status bar
constexpr int kShowAfter = 200;     // ms after which a job is worth showing
} // namespace

MainWindow::MainWindow(std::shared_ptr<Engine> engine, Remember remember, QWidget *parent)
    : QMainWindow(parent), m_session(std::make_unique<Session>(std::move(engine))), m_remember(remember)
{
    if (remember == Remember::Yes) {
        m_settings = loadSettings();
        m_session->comparisons()->setStateFolder(QStandardPaths::writableLocation(QStandardPaths::GenericCacheLocation) + "/planish/compare");
    }
    setWindowTitle(QStringLiteral("Planish"));
    setAcceptDrops(true);
    setDockOptions(AnimatedDocks | AllowTabbedDocks);
    buildPanels();
    buildDocks();
    buildStatusBar();
    buildMenus(this);
    connectAll();
    resize(1280, 720);
    m_freshLayout = saveState();
    restoreGeometry(m_settings.geometry);
    restoreState(m_settings.layout);
    setTheme(m_settings.theme);
}

MainWindow::~MainWindow()
{
    delete takeCentralWidget(); // panels read the session: they go first
    const auto docks = findChildren<QDockWidget *>();
    qDeleteAll(docks);
    m_session.reset();
}

void MainWindow::buildPanels()
{
    Session *session = m_session.get();
    m_start = new StartPage;
    m_start->setSample(sampleFile());
    m_start->setRecent(m_settings.recent);
    m_start->setMessage({});
    m_tabs = new QTabWidget;
    m_tabs->setDocumentMode(true);
    m_tabs->addTab(m_map = new MapPanel(session), QStringLiteral("&Map"));
    m_tabs->addTab(m_geometry = new GeometryPanel(session), QStringLiteral("&Geometry"));
    m_tabs->addTab(m_try = new TryPanel(session), QStringLiteral("&Try"));
    m_tabs->addTab(m_plan = new PlanPanel(session), QStringLiteral("&Plan"));
    m_stack = new QStackedWidget;
    m_stack->addWidget(m_start);
    m_stack->addWidget(m_tabs);
    setCentralWidget(m_stack);
}

void MainWindow::buildDocks()
{
    const auto add = [this](const QString &title, QWidget *content, Qt::DockWidgetArea area) {
        auto *dock = new QDockWidget(title, this);
        dock->setObjectName(title);
        dock->setWidget(content);
        addDockWidget(area, dock);
        return dock;
    };
    auto *edges = add(QStringLiteral("Edges"), m_edges = new EdgesPanel(m_session.get()), Qt::LeftDockWidgetArea);
    auto *inspector = add(QStringLiteral("Inspector"), m_inspector = new InspectorPanel(m_session.get()), Qt::RightDockWidgetArea);
    resizeDocks({edges, inspector}, {260, 250}, Qt::Horizontal);
}

void MainWindow::buildStatusBar()
{
    m_backend = new QToolButton;
    m_backend->setText(toQString(m_session->engine()->backend()->info().label));
    m_backend->setAutoRaise(true);
    m_backend->setToolTip(QStringLiteral("Where numbers are computed; click for the other backends"));
    m_job = new QLabel;
    m_split = new QLabel;
    m_split->setToolTip(QStringLiteral("Fits see calibration rows, errors are measured on held-out rows, sealed rows are opened by verify only"));
    m_progress = new QProgressBar;
    m_progress->setMaximumWidth(120);
    m_progress->setTextVisible(false);
    m_cancel = new QToolButton;
    m_cancel->setText(QStringLiteral("Cancel"));
    statusBar()->addPermanentWidget(m_job);
    statusBar()->addPermanentWidget(m_progress);
    statusBar()->addPermanentWidget(m_cancel);
    statusBar()->addPermanentWidget(m_split);
    statusBar()->addPermanentWidget(m_backend);
    for (QWidget *widget : std::initializer_list<QWidget *>{m_job, m_progress, m_cancel}) {
        widget->hide();
    }
}

void MainWindow::connectAll()
{
    Session *session = m_session.get();
    connect(m_start, &StartPage::openRequested, this, &MainWindow::askDump);
    connect(m_start, &StartPage::sampleRequested, this, &MainWindow::openSample);
    connect(m_start, &StartPage::fileRequested, this, [this](const QString &file) { openFile(file); });
    connect(m_backend, &QToolButton::clicked, this, &MainWindow::showBackend);
    connect(m_cancel, &QToolButton::clicked, session->lanes(), &Lanes::cancelRunning);
    connect(m_tabs, &QTabWidget::currentChanged, this, [this](int index) {
        const auto tab = static_cast<Tab>(index);
        m_inspector->setPage(tab == Tab::Try ? InspectorPage::Candidate : tab == Tab::Plan ? InspectorPage::Plan : InspectorPage::Edge);
    });
    connect(m_map, &MapPanel::edgeActivated, this, [this] { showTab(Tab::Geometry); });
    connect(m_edges, &EdgesPanel::searchFailed, this, &MainWindow::message);
    connect(m_try, &TryPanel::messaged, this, &MainWindow::message);
    connect(session, &Session::openStarted, this, [this](const QString &file) { m_start->setMessage(QStringLiteral("Opening %1 …").arg(file)); });
    connect(session, &Session::openedChanged, this, &MainWindow::opened);
    connect(session, &Session::openFailed, this, [this](const QString &text) {
        m_start->setMessage(text);
        message(text);
    });
    connect(session->geometry(), &GeometryStore::failed, this, &MainWindow::message);
    connect(session->lanes(), &Lanes::progressed, this, &MainWindow::showProgress);
    connect(session->lanes(), &Lanes::jobStarted, this, [this](LaneKind, const QString &title) {
        QTimer::singleShot(kShowAfter, this, [this, title] {
            if (!m_session->lanes()->idle() && !m_progress->isVisible()) {
                showProgress({LaneKind::Full, title, {}});
            }
        });
    });
    connect(session->lanes(), &Lanes::becameIdle, this, [this] {
        for (QWidget *widget : std::initializer_list<QWidget *>{m_job, m_progress, m_cancel}) {
            widget->hide();
        }
    });
    connect(session->evaluations(), &EvaluationStore::evaluationChanged, this, &MainWindow::showSplit);
}

void MainWindow::openFile(const QString &file, const QString &weights)
{
    m_session->open(file, weights);
}

void MainWindow::opened()
{
    const OpenRequest &request = m_session->openRequest();
    m_stack->setCurrentWidget(m_tabs);
    m_start->setMessage({});
    setWindowTitle(QStringLiteral("%1%2 - Planish")
                       .arg(QFileInfo(toQString(request.file)).fileName(),
                            request.weights.empty() ? QString() : QStringLiteral(" + ") + QFileInfo(toQString(request.weights)).fileName()));
    remember(m_settings, toQString(request.file));
    emit recentChanged();
    if (m_remember == Remember::Yes) {
        saveSettings(m_settings);
    }
    for (const std::string &note : m_session->opened()->graph.notes) {
        message(toQString(note));
    }
}

void MainWindow::showSplit()
{
    const EvaluationSlot *slot = m_session->evaluations()->slot(m_session->candidates()->current());
    m_split->setText(slot != nullptr && slot->shown ? splitSentence(slot->shown->rows, toQString(slot->shown->splitUnit)) : QString());
}

void MainWindow::showProgress(const JobProgress &progress)
{
    const ProgressReport &report = progress.report;
    QString text = progress.title;
    if (report.secondsLeft >= 0) {
        text += QStringLiteral(", %1 s left").arg(shortNumber(report.secondsLeft));
    }
    m_job->setText(fontMetrics().elidedText(text, Qt::ElideMiddle, 260));
    m_job->setToolTip(progress.title);
    m_progress->setRange(0, report.total > 0 ? 1000 : 0);
    m_progress->setValue(report.total > 0 ? static_cast<int>(1000 * report.done / report.total) : 0);
    for (QWidget *widget : std::initializer_list<QWidget *>{m_job, m_progress, m_cancel}) {
        widget->show();
    }
}

void MainWindow::message(const QString &text)
{
    statusBar()->showMessage(text, kMessageTime);
}

void MainWindow::askDump()
{
    const QString file = QFileDialog::getOpenFileName(this, QStringLiteral("Open dump"), {},
                                                      QStringLiteral("Dumps (*.h5 *.hdf5 *.safetensors *.gguf *.dat);;All files (*)"));
    if (!file.isEmpty()) {
        openFile(file);
    }
}

void MainWindow::askCheckpoint()
{
    if (!m_session->opened()) {
        message(QStringLiteral("Open a dump first; the checkpoint gives its edges their weights."));
        return;
    }
    const QString file = QFileDialog::getOpenFileName(this, QStringLiteral("Open checkpoint"), {},
                                                      QStringLiteral("Checkpoints (*.safetensors *.safetensors.index.json *.h5);;All files (*)"));
    if (!file.isEmpty()) {
        // An index of shards stands for its folder.
        const QString path = file.endsWith(".index.json") ? QFileInfo(file).absolutePath() : file;
        openFile(toQString(m_session->openRequest().file), path);
    }
}

void MainWindow::openSample()
{
    if (const QString file = sampleFile(); !file.isEmpty()) {
        openFile(file);
    }
}

void MainWindow::setTheme(Theme theme)
{
    m_settings.theme = theme;
    const QPalette system = QApplication::style()->standardPalette();
    const bool dark = theme == Theme::Dark || (theme == Theme::System && isDark(QApplication::palette()) && isDark(system));
    QApplication::setPalette(dark ? darkPalette() : lightPalette());
}

void MainWindow::resetLayout()
{
    restoreState(m_freshLayout);
}

void MainWindow::find()
{
    m_edges->focusFilter();
}

void MainWindow::escape()
{
    Selection *selection = m_session->selection();
    if (selection->channel() >= 0 || selection->token() >= 0) {
        selection->setChannel(-1);
        selection->setToken(-1);
    } else {
        m_edges->clearFilter();
    }
}

void MainWindow::copyAsCommand()
{
    if (!m_session->opened()) {
        return;
    }
    const EvaluationSlot *slot = m_session->evaluations()->slot(m_session->candidates()->current());
    const bool trying = m_tabs->currentIndex() == static_cast<int>(Tab::Try);
    const QString command = trying && slot != nullptr ? evaluateCommand(m_session->openRequest(), slot->asked)
                                                      : analyzeCommand(m_session->openRequest(), m_session->selection()->edge().value);
    QApplication::clipboard()->setText(command);
    message(QStringLiteral("Copied: ") + command);
}

void MainWindow::showBackend()
{
    QString text;
    for (const BackendInfo &info : listBackends()) {
        text += QStringLiteral("<p><b>%1</b>: %2%3</p>")
                    .arg(toQString(info.key).toHtmlEscaped(), info.usable ? QStringLiteral("usable. ") : QStringLiteral("not usable here. "),
                         toQString(info.reason.empty() ? info.label : info.reason).toHtmlEscaped());
    }
    QMessageBox::information(this, QStringLiteral("Backends"), text);
}

void MainWindow::dragEnterEvent(QDragEnterEvent *event)
{
    if (event->mimeData()->hasUrls()) {
        event->acceptProposedAction();
    }
}

void MainWindow::dropEvent(QDropEvent *event)
{
    // Two files dropped together are dump and checkpoint; a lone safetensors file is the checkpoint of what is open.
    QString dump, weights;
    for (const QUrl &url : event->mimeData()->urls()) {
        const QString file = url.toLocalFile();
        (file.endsWith(".safetensors") || QFileInfo(file).isDir() ? weights : dump) = file;
    }
    if (dump.isEmpty() && m_session->opened()) {
        dump = toQString(m_session->openRequest().file);
    }
    if (dump.isEmpty()) {
        std::swap(dump, weights);
    }
    if (!dump.isEmpty()) {
        openFile(dump, weights);
    }
}

void MainWindow::closeEvent(QCloseEvent *event)
{
    m_settings.geometry = saveGeometry();
    m_settings.layout = saveState();
    if (m_remember == Remember::Yes) {
        saveSettings(m_settings);
    }
    QMainWindow::closeEvent(event);
}

} // namespace planish
