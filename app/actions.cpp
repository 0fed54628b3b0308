#include "app/actions.h"

#include <QActionGroup>
#include <QFileInfo>
#include <QMenu>
#include <QMenuBar>
#include <QUndoStack>

#include "app/help.h"
#include "app/main_window.h"

namespace planish {

namespace {

void buildFile(MainWindow *window)
{
    QMenu *menu = window->menuBar()->addMenu(QStringLiteral("&File"));
    menu->addAction(QStringLiteral("&Open dump…"), QKeySequence::Open, window, &MainWindow::askDump);
    menu->addAction(QStringLiteral("Open &checkpoint…"), QKeySequence(QStringLiteral("Ctrl+Shift+O")), window, &MainWindow::askCheckpoint);
    QMenu *recent = menu->addMenu(QStringLiteral("&Recent"));
    const auto fill = [window, recent] {
        recent->clear();
        for (const QString &file : window->settings().recent) {
            recent->addAction(QFileInfo(file).fileName(), window, [window, file] { window->openFile(file); })->setToolTip(file);
        }
        recent->setEnabled(!window->settings().recent.isEmpty());
        recent->setToolTipsVisible(true);
    };
    fill();
    QObject::connect(window, &MainWindow::recentChanged, recent, fill);
    QAction *sample = menu->addAction(QStringLiteral("&Explore the sample"), window, &MainWindow::openSample);
    sample->setEnabled(!sampleFile().isEmpty());
    menu->addSeparator();
    menu->addAction(QStringLiteral("&Quit"), QKeySequence::Quit, window, &QWidget::close);
}

void buildEdit(MainWindow *window)
{
    QMenu *menu = window->menuBar()->addMenu(QStringLiteral("&Edit"));
    QUndoStack *stack = window->session()->undoStack();
    QAction *undo = stack->createUndoAction(window, QStringLiteral("&Undo"));
    QAction *redo = stack->createRedoAction(window, QStringLiteral("&Redo"));
    undo->setShortcut(QKeySequence::Undo);
    redo->setShortcut(QKeySequence(QStringLiteral("Ctrl+Shift+Z")));
    menu->addAction(undo);
    menu->addAction(redo);
    menu->addSeparator();
    menu->addAction(QStringLiteral("&Find edge or channel"), QKeySequence::Find, window, &MainWindow::find);
    menu->addAction(QStringLiteral("Copy as CLI &command"), QKeySequence(QStringLiteral("Ctrl+Shift+C")), window, &MainWindow::copyAsCommand);
    QAction *escape = menu->addAction(QStringLiteral("&Clear selection"), QKeySequence(Qt::Key_Escape), window, &MainWindow::escape);
    escape->setShortcutContext(Qt::WindowShortcut);
}

void buildView(MainWindow *window)
{
    QMenu *menu = window->menuBar()->addMenu(QStringLiteral("&View"));
    const QStringList names{"&Map", "&Geometry", "&Try", "&Plan"};
    for (int i = 0; i < names.size(); ++i) {
        menu->addAction(names[i], QKeySequence(QStringLiteral("Ctrl+%1").arg(i + 1)), window, [window, i] { window->showTab(static_cast<Tab>(i)); });
    }
    menu->addSeparator();
    auto *themes = new QActionGroup(window);
    const QList<std::pair<QString, Theme>> rows{{"Follow the &system", Theme::System}, {"&Light", Theme::Light}, {"&Dark", Theme::Dark}};
    for (const auto &[name, theme] : rows) {
        QAction *action = menu->addAction(name, window, [window, theme = theme] { window->setTheme(theme); });
        action->setCheckable(true);
        action->setChecked(window->settings().theme == theme);
        themes->addAction(action);
    }
    menu->addSeparator();
    menu->addAction(QStringLiteral("&Reset layout"), window, &MainWindow::resetLayout);
}

void buildHelp(MainWindow *window)
{
    QMenu *menu = window->menuBar()->addMenu(QStringLiteral("&Help"));
    menu->addAction(QStringLiteral("&Shortcuts"), QKeySequence::HelpContents, window, [window] { showHelp(window, HelpPage::Shortcuts); });
    menu->addAction(QStringLiteral("What the &numbers mean"), window, [window] { showHelp(window, HelpPage::Numbers); });
    menu->addAction(QStringLiteral("&Methods"), window, [window] { showHelp(window, HelpPage::Methods); });
    menu->addAction(QStringLiteral("&Failure lab"), window, [window] { showHelp(window, HelpPage::FailureLab); });
    menu->addAction(QStringLiteral("&Backends"), window, &MainWindow::showBackend);
}

} // namespace

void buildMenus(MainWindow *window)
{
    buildFile(window);
    buildEdit(window);
    buildView(window);
    buildHelp(window);
}

} // namespace planish
