// What every plot and table can do: save as PNG, SVG or CSV with a provenance line, copy as TSV, show the table behind it.
#pragma once

#include <functional>

#include <QWidget>

#include "core/io/error.h"
#include "views/models/number_text.h"

class QTableView;

namespace planish {

/// Where the numbers of a plot come from: file, edge, candidate, rows, version. Written under every exported picture.
using Provenance = std::function<QString()>;

/// Adds the context menu to a plot. `table` gives the numbers behind it.
void addPlotMenu(QWidget *plot, std::function<PlotTable()> table, Provenance provenance);
/// Adds Ctrl+C (TSV of the selected rows, all when none) and a context menu to a table.
void addTableMenu(QTableView *table, Provenance provenance);
PlotTable tableOf(const QTableView *view);

enum class PictureFormat { Png, Svg };
Expected<void> savePicture(QWidget *plot, const QString &file, PictureFormat format, const QString &provenance);
Expected<void> saveText(const QString &file, const QString &text);

} // namespace planish
