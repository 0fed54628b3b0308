#include "views/charts/plot_export.h"

#include <QAction>
#include <QClipboard>
#include <QDialog>
#include <QFileDialog>
#include <QGraphicsView>
#include <QGuiApplication>
#include <QHeaderView>
#include <QImage>
#include <QMenu>
#include <QMessageBox>
#include <QPainter>
#include <QSaveFile>
#include <QShortcut>
#include <QStandardItemModel>
#include <QSvgGenerator>
#include <QTableView>
#include <QVBoxLayout>

namespace planish {

namespace {

constexpr int kFooter = 22;       // height of the provenance line
constexpr double kPngScale = 2.0; // pictures for a paper are wanted at twice the screen

void paintPlot(QPainter &painter, QWidget *plot, const QString &provenance)
{
    const QSize size = plot->size();
    painter.fillRect(QRect(0, 0, size.width(), size.height() + kFooter), plot->palette().color(QPalette::Base));
    if (auto *view = qobject_cast<QGraphicsView *>(plot)) {
        view->render(&painter, QRectF(0, 0, size.width(), size.height()), view->viewport()->rect());
    } else {
        plot->render(&painter, QPoint(0, 0));
    }
    painter.setPen(plot->palette().color(QPalette::Text));
    QFont font = plot->font();
    font.setPointSizeF(std::max(6.0, font.pointSizeF() - 2));
    painter.setFont(font);
    painter.drawText(QRect(6, size.height(), size.width() - 12, kFooter), Qt::AlignVCenter | Qt::AlignLeft,
                     QFontMetrics(font).elidedText(provenance, Qt::ElideMiddle, size.width() - 12));
}

void report(QWidget *parent, const Expected<void> &result)
{
    if (!result) {
        QMessageBox::warning(parent, QStringLiteral("Planish"), messageOf(result.error()));
    }
}

QString askName(QWidget *parent, const QString &filter)
{
    return QFileDialog::getSaveFileName(parent, QStringLiteral("Save plot"), {}, filter);
}

void showTwin(QWidget *parent, const PlotTable &table, const Provenance &provenance)
{
    auto *dialog = new QDialog(parent);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(QStringLiteral("Table"));
    auto *model = new QStandardItemModel(dialog);
    model->setHorizontalHeaderLabels(table.header);
    for (const QStringList &row : table.rows) {
        QList<QStandardItem *> items;
        for (const QString &cell : row) {
            items << new QStandardItem(cell);
            items.last()->setEditable(false);
        }
        model->appendRow(items);
    }
    auto *view = new QTableView;
    view->setModel(model);
    view->horizontalHeader()->setStretchLastSection(true);
    addTableMenu(view, provenance);
    auto *layout = new QVBoxLayout(dialog);
    layout->addWidget(view);
    dialog->resize(520, 420);
    dialog->show();
}

} // namespace

Expected<void> saveText(const QString &file, const QString &text)
{
    QSaveFile out(file);
    if (!out.open(QIODevice::WriteOnly) || out.write(text.toUtf8()) < 0 || !out.commit()) {
        return machineError(file.toStdString(), "cannot be written: " + out.errorString().toStdString(),
                            "a writable folder with free space");
    }
    return {};
}

Expected<void> savePicture(QWidget *plot, const QString &file, PictureFormat format, const QString &provenance)
{
    const QSize size(plot->width(), plot->height() + kFooter);
    if (format == PictureFormat::Svg) {
        QSvgGenerator generator;
        generator.setFileName(file);
        generator.setSize(size);
        generator.setViewBox(QRect(QPoint(0, 0), size));
        generator.setTitle(plot->accessibleName());
        generator.setDescription(provenance);
        QPainter painter;
        if (!painter.begin(&generator)) {
            return machineError(file.toStdString(), "cannot be written", "a writable folder with free space");
        }
        paintPlot(painter, plot, provenance);
        return {};
    }
    QImage image(size * kPngScale, QImage::Format_RGB32);
    image.setDevicePixelRatio(kPngScale);
    {
        QPainter painter(&image);
        painter.setRenderHint(QPainter::Antialiasing);
        paintPlot(painter, plot, provenance);
    }
    image.setText("Description", provenance);
    if (!image.save(file, "PNG")) {
        return machineError(file.toStdString(), "cannot be written", "a writable folder with free space");
    }
    return {};
}

void addPlotMenu(QWidget *plot, std::function<PlotTable()> table, Provenance provenance)
{
    plot->setContextMenuPolicy(Qt::CustomContextMenu);
    QObject::connect(plot, &QWidget::customContextMenuRequested, plot, [plot, table, provenance](const QPoint &at) {
        QMenu menu(plot);
        menu.addAction(QStringLiteral("Save as PNG…"), plot, [=] {
            const QString file = askName(plot, QStringLiteral("PNG (*.png)"));
            if (!file.isEmpty()) {
                report(plot, savePicture(plot, file, PictureFormat::Png, provenance()));
            }
        });
        menu.addAction(QStringLiteral("Save as SVG…"), plot, [=] {
            const QString file = askName(plot, QStringLiteral("SVG (*.svg)"));
            if (!file.isEmpty()) {
                report(plot, savePicture(plot, file, PictureFormat::Svg, provenance()));
            }
        });
        menu.addAction(QStringLiteral("Save numbers as CSV…"), plot, [=] {
            const QString file = askName(plot, QStringLiteral("CSV (*.csv)"));
            if (!file.isEmpty()) {
                report(plot, saveText(file, "# " + provenance() + '\n' + toCsv(table())));
            }
        });
        menu.addSeparator();
        menu.addAction(QStringLiteral("Copy numbers (TSV)"), plot,
                       [=] { QGuiApplication::clipboard()->setText(toTsv(table())); });
        menu.addAction(QStringLiteral("Show as table"), plot, [=] { showTwin(plot, table(), provenance); });
        menu.exec(plot->mapToGlobal(at));
    });
}

PlotTable tableOf(const QTableView *view)
{
    const QAbstractItemModel *model = view->model();
    PlotTable table;
    for (int c = 0; c < model->columnCount(); ++c) {
        table.header << model->headerData(c, Qt::Horizontal).toString();
    }
    const QModelIndexList picked = view->selectionModel() ? view->selectionModel()->selectedRows() : QModelIndexList();
    for (int r = 0; r < model->rowCount(); ++r) {
        const bool wanted =
            picked.size() < 2 || std::any_of(picked.begin(), picked.end(), [r](const QModelIndex &i) { return i.row() == r; });
        if (wanted) {
            QStringList row;
            for (int c = 0; c < model->columnCount(); ++c) {
                row << model->index(r, c).data().toString();
            }
            table.rows.push_back(row);
        }
    }
    return table;
}

void addTableMenu(QTableView *table, Provenance provenance)
{
    const auto copy = [table] { QGuiApplication::clipboard()->setText(toTsv(tableOf(table))); };
    auto *shortcut = new QShortcut(QKeySequence::Copy, table, nullptr, nullptr, Qt::WidgetWithChildrenShortcut);
    QObject::connect(shortcut, &QShortcut::activated, table, copy);
    table->setContextMenuPolicy(Qt::CustomContextMenu);
    QObject::connect(table, &QWidget::customContextMenuRequested, table, [table, copy, provenance](const QPoint &at) {
        QMenu menu(table);
        menu.addAction(QStringLiteral("Copy (TSV)"), table, copy);
        menu.addAction(QStringLiteral("Save as CSV…"), table, [=] {
            const QString file = askName(table, QStringLiteral("CSV (*.csv)"));
            if (!file.isEmpty()) {
                report(table, saveText(file, "# " + provenance() + '\n' + toCsv(tableOf(table))));
            }
        });
        menu.exec(table->viewport()->mapToGlobal(at));
    });
}

} // namespace planish
