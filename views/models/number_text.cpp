#include "views/models/number_text.h"

#include <cmath>

#include <QLocale>

namespace planish {

QString shortNumber(double value)
{
    return std::isfinite(value) ? QString::number(value, 'g', 4) : QStringLiteral("-");
}

QString shortNumber(std::optional<double> value)
{
    return value ? shortNumber(*value) : QStringLiteral("-");
}

QString fullNumber(double value)
{
    return std::isfinite(value) ? QString::number(value, 'g', 17) : QStringLiteral("null");
}

QString countText(double value)
{
    return QLocale(QLocale::English).toString(std::llround(value));
}

QString percentText(double fraction)
{
    if (!std::isfinite(fraction)) {
        return QStringLiteral("-");
    }
    return QString::number(100.0 * fraction, 'g', 3) + QStringLiteral(" %");
}

QString toQString(const std::string &text)
{
    return QString::fromStdString(text);
}

QString messageOf(const Error &error)
{
    return toQString(toText(error));
}

QString toTsv(const PlotTable &table)
{
    QString text = table.header.join('\t') + '\n';
    for (const QStringList &row : table.rows) {
        QStringList cells = row;
        for (QString &cell : cells) {
            cell.replace('\t', ' ').replace('\n', ' ');
        }
        text += cells.join('\t') + '\n';
    }
    return text;
}

QString toCsv(const PlotTable &table)
{
    const auto quoted = [](QString cell) {
        if (cell.contains(',') || cell.contains('"') || cell.contains('\n')) {
            cell.replace("\"", "\"\"");
            cell = '"' + cell + '"';
        }
        return cell;
    };
    QString text;
    const auto line = [&](const QStringList &cells) {
        QStringList out;
        for (const QString &cell : cells) {
            out << quoted(cell);
        }
        text += out.join(',') + '\n';
    };
    line(table.header);
    for (const QStringList &row : table.rows) {
        line(row);
    }
    return text;
}

} // namespace planish
