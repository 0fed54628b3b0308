// The window: docks, tabs, menus and status bar. It owns the Session and holds no data of its own.
#pragma once

#include <memory>

#include <QLabel>
#include <QMainWindow>
#include <QProgressBar>
#include <QStackedWidget>
#include <QTabWidget>
#include <QToolButton>

#include "app/settings.h"
#include "views/models/session.h"
#include "views/panels/edges_panel.h"
#include "views/panels/geometry_panel.h"
#include "views/panels/inspector_panel.h"
#include "views/panels/map_panel.h"
#include "views/panels/plan_panel.h"
#include "views/panels/start_page.h"
#include "views/panels/try_panel.h"

namespace planish {

enum class Tab { Map, Geometry, Try, Plan };
/// A tour leaves no trace in the user's settings.
enum class Remember { Yes, No };

class MainWindow : public QMainWindow {
    Q_OBJECT
public:
    MainWindow(std::shared_ptr<Engine> engine, Remember remember, QWidget *parent = nullptr);
    ~MainWindow() override;

    void openFile(const QString &file, const QString &weights = {});
    void showTab(Tab tab) { m_tabs->setCurrentIndex(static_cast<int>(tab)); }
    void setTheme(Theme theme);
    Session *session() { return m_session.get(); }
    MapPanel *map() { return m_map; }
    GeometryPanel *geometryPanel() { return m_geometry; }
    TryPanel *tryPanel() { return m_try; }
    PlanPanel *planPanel() { return m_plan; }
    EdgesPanel *edges() { return m_edges; }

    // Called by the menus.
    void askDump();
    void askCheckpoint();
    void openSample();
    void resetLayout();
    void copyAsCommand();
    void escape(); ///< selection first, then the filter
    const Settings &settings() const { return m_settings; }
    void find();
    void showBackend();

signals:
    void recentChanged();

protected:
    void dragEnterEvent(QDragEnterEvent *event) override;
    void dropEvent(QDropEvent *event) override;
    void closeEvent(QCloseEvent *event) override;

private:
    void buildPanels();
    void buildDocks();
    void buildStatusBar();
    void connectAll();
    void opened();
    void showSplit();
    void showProgress(const JobProgress &progress);
    void message(const QString &text);

    std::unique_ptr<Session> m_session;
    Settings m_settings;
    Remember m_remember;
    QByteArray m_freshLayout;
    QStackedWidget *m_stack = nullptr;
    StartPage *m_start = nullptr;
    QTabWidget *m_tabs = nullptr;
    MapPanel *m_map = nullptr;
    GeometryPanel *m_geometry = nullptr;
    TryPanel *m_try = nullptr;
    PlanPanel *m_plan = nullptr;
    EdgesPanel *m_edges = nullptr;
    InspectorPanel *m_inspector = nullptr;
    QToolButton *m_backend = nullptr, *m_cancel = nullptr;
    QLabel *m_job = nullptr, *m_split = nullptr;
    QProgressBar *m_progress = nullptr;
};

} // namespace planish
