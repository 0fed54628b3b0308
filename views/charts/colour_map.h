// Colour maps as data: viridis for magnitudes, a red-blue map centred on zero for signed values. Positions are 0..1.
#pragma once

#include <array>

#include <QColor>

namespace planish {

enum class ColourMap { Viridis, Diverging };

/// Colour at `position`, clamped to 0..1; the diverging map has its neutral colour at 0.5.
QRgb colourAt(ColourMap map, double position);
/// 256 colours for painting many cells.
std::array<QRgb, 256> colourTable(ColourMap map);
/// Black or white, whichever reads better on this colour.
QColor textColourOn(QRgb background);

} // namespace planish
