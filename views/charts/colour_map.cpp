#include "views/charts/colour_map.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace planish {

namespace {
// Viridis (S. van der Walt, N. Smith, CC0), eleven equidistant anchors.
constexpr std::array<QRgb, 11> kViridis{0xff440154, 0xff482475, 0xff414487, 0xff355f8d, 0xff2a788e, 0xff21918c,
                                        0xff22a884, 0xff44bf70, 0xff7ad151, 0xffbddf26, 0xfffde725};
// RdBu of ColorBrewer (C. Brewer, Apache-2.0), reversed: blue is negative, red is positive.
constexpr std::array<QRgb, 11> kRedBlue{0xff053061, 0xff2166ac, 0xff4393c3, 0xff92c5de, 0xffd1e5f0, 0xfff7f7f7,
                                        0xfffddbc7, 0xfff4a582, 0xffd6604d, 0xffb2182b, 0xff67001f};

std::span<const QRgb> anchorsOf(ColourMap map)
{
    return map == ColourMap::Viridis ? std::span<const QRgb>(kViridis) : std::span<const QRgb>(kRedBlue);
}
} // namespace

QRgb colourAt(ColourMap map, double position)
{
    const auto anchors = anchorsOf(map);
    const double x = std::isfinite(position) ? std::clamp(position, 0.0, 1.0) * static_cast<double>(anchors.size() - 1) : 0.0;
    const auto low = std::min(static_cast<std::size_t>(x), anchors.size() - 2);
    const double t = x - static_cast<double>(low);
    const auto mix = [t](int a, int b) { return static_cast<int>(std::lround(a + t * (b - a))); };
    const QRgb a = anchors[low], b = anchors[low + 1];
    return qRgb(mix(qRed(a), qRed(b)), mix(qGreen(a), qGreen(b)), mix(qBlue(a), qBlue(b)));
}

std::array<QRgb, 256> colourTable(ColourMap map)
{
    std::array<QRgb, 256> table{};
    for (std::size_t i = 0; i < table.size(); ++i) {
        table[i] = colourAt(map, static_cast<double>(i) / 255.0);
    }
    return table;
}

QColor textColourOn(QRgb background)
{
    // Luma of Rec. 601: good enough to choose between black and white.
    const double luma = 0.299 * qRed(background) + 0.587 * qGreen(background) + 0.114 * qBlue(background);
    return luma > 140.0 ? QColor(Qt::black) : QColor(Qt::white);
}

} // namespace planish
