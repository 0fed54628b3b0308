// How numbers, errors and tables read on screen. No rounding of meaning: 4 significant digits, the full value is in the tooltip
// or CSV.
#pragma once

#include <optional>
#include <vector>

#include <QString>
#include <QStringList>

#include "core/io/error.h"

namespace planish {

QString shortNumber(double value); ///< 4 significant digits; "-" when not finite
QString shortNumber(std::optional<double> value);
QString fullNumber(double value); ///< 17 significant digits, as the command line prints it
QString countText(double value);  ///< 1,234,567
QString percentText(double fraction);
QString toQString(const std::string &text);
QString messageOf(const Error &error);

/// The numbers behind a plot or a table: for TSV, CSV and the table twin.
struct PlotTable {
    QStringList header;
    std::vector<QStringList> rows;
};
QString toTsv(const PlotTable &table);
QString toCsv(const PlotTable &table);

} // namespace planish
