// Colours of plots and lights, chosen for the palette at hand (dark or light), and the palettes themselves.
#pragma once

#include <QColor>
#include <QPalette>

#include "views/models/status_text.h"

class QChart;

namespace planish {

/// What a series means; the colour follows.
enum class SeriesTone { Main, Second, Before, Weight, Limit };

enum class AxisScale { Linear, Logarithmic };

bool isDark(const QPalette &palette);
QColor toneColour(SeriesTone tone, const QPalette &palette);
QColor lightColour(Light light, const QPalette &palette);
QColor gridColour(const QPalette &palette);
QColor faintText(const QPalette &palette);
/// Severity 0..1: from calm to red.
QColor severityColour(double severity, const QPalette &palette);
/// Background, axes, grid, legend and fonts of a chart.
void styleChart(QChart *chart, const QPalette &palette);

QPalette lightPalette();
QPalette darkPalette();

} // namespace planish
