#include "views/charts/chart_style.h"

#include <algorithm>

#include <QAbstractAxis>
#include <QChart>
#include <QLegend>

namespace planish {

bool isDark(const QPalette &palette)
{
    return palette.color(QPalette::Window).lightness() < 128;
}

QColor toneColour(SeriesTone tone, const QPalette &palette)
{
    const bool dark = isDark(palette); // blue and orange of Okabe and Ito, readable to colour-blind eyes
    switch (tone) {
    case SeriesTone::Main:
        return dark ? QColor(0x56, 0xb4, 0xe9) : QColor(0x00, 0x72, 0xb2);
    case SeriesTone::Second:
        return dark ? QColor(0xe6, 0x9f, 0x00) : QColor(0xd5, 0x5e, 0x00);
    case SeriesTone::Before:
        return dark ? QColor(0x8c, 0x8c, 0x8c) : QColor(0xa0, 0xa0, 0xa0);
    case SeriesTone::Weight:
        return dark ? QColor(0x33, 0xc4, 0x9b) : QColor(0x00, 0x8f, 0x68);
    case SeriesTone::Limit:
        return dark ? QColor(0xf0, 0x80, 0x80) : QColor(0xc0, 0x30, 0x30);
    }
    return palette.color(QPalette::Text);
}

QColor lightColour(Light light, const QPalette &palette)
{
    const bool dark = isDark(palette);
    switch (light) {
    case Light::Green:
        return dark ? QColor(0x4c, 0xc3, 0x7a) : QColor(0x1e, 0x8e, 0x4a);
    case Light::Amber:
        return dark ? QColor(0xf0, 0xb4, 0x3c) : QColor(0xb8, 0x74, 0x00);
    case Light::Red:
        return dark ? QColor(0xf2, 0x6d, 0x6d) : QColor(0xc4, 0x2b, 0x2b);
    case Light::Grey:
        return faintText(palette);
    }
    return palette.color(QPalette::Text);
}

QColor gridColour(const QPalette &palette)
{
    return isDark(palette) ? QColor(0x45, 0x48, 0x4d) : QColor(0xdd, 0xdd, 0xdd);
}

QColor faintText(const QPalette &palette)
{
    return isDark(palette) ? QColor(0xa2, 0xa6, 0xad) : QColor(0x6b, 0x6b, 0x6b);
}

QColor severityColour(double severity, const QPalette &palette)
{
    // Hue from blue-green (170) to red (0): the order is also in the length of the bar.
    const double s = std::clamp(severity, 0.0, 1.0);
    return QColor::fromHsv(static_cast<int>(170.0 * (1.0 - s)), 170, isDark(palette) ? 190 : 200);
}

void styleChart(QChart *chart, const QPalette &palette)
{
    chart->setBackgroundBrush(palette.color(QPalette::Base));
    chart->setBackgroundRoundness(0);
    chart->setTitleBrush(palette.color(QPalette::Text));
    chart->legend()->setLabelColor(palette.color(QPalette::Text));
    chart->setMargins({4, 2, 8, 2});
    const auto axes = chart->axes();
    for (QAbstractAxis *axis : axes) {
        axis->setLabelsColor(palette.color(QPalette::Text));
        axis->setTitleBrush(palette.color(QPalette::Text));
        axis->setGridLineColor(gridColour(palette));
        axis->setMinorGridLineColor(gridColour(palette));
        axis->setLinePenColor(faintText(palette));
    }
}

QPalette lightPalette()
{
    QPalette p(QColor(0xf2, 0xf3, 0xf5));
    p.setColor(QPalette::Base, Qt::white);
    p.setColor(QPalette::AlternateBase, QColor(0xf6, 0xf7, 0xf9));
    p.setColor(QPalette::Text, QColor(0x1c, 0x1e, 0x21));
    p.setColor(QPalette::WindowText, QColor(0x1c, 0x1e, 0x21));
    p.setColor(QPalette::ButtonText, QColor(0x1c, 0x1e, 0x21));
    p.setColor(QPalette::Highlight, QColor(0x1f, 0x6f, 0xb5));
    p.setColor(QPalette::HighlightedText, Qt::white);
    p.setColor(QPalette::Link, QColor(0x00, 0x5f, 0xa8));
    p.setColor(QPalette::PlaceholderText, QColor(0x80, 0x83, 0x88));
    for (const auto role : {QPalette::Text, QPalette::WindowText, QPalette::ButtonText}) {
        p.setColor(QPalette::Disabled, role, QColor(0x9a, 0x9d, 0xa2));
    }
    return p;
}

QPalette darkPalette()
{
    QPalette p(QColor(0x2b, 0x2d, 0x31));
    const QColor text(0xe6, 0xe8, 0xea);
    p.setColor(QPalette::Window, QColor(0x2b, 0x2d, 0x31));
    p.setColor(QPalette::Button, QColor(0x36, 0x39, 0x3e));
    p.setColor(QPalette::Base, QColor(0x1f, 0x20, 0x23));
    p.setColor(QPalette::AlternateBase, QColor(0x26, 0x28, 0x2b));
    p.setColor(QPalette::ToolTipBase, QColor(0x36, 0x39, 0x3e));
    for (const auto role : {QPalette::Text, QPalette::WindowText, QPalette::ButtonText, QPalette::ToolTipText}) {
        p.setColor(role, text);
        p.setColor(QPalette::Disabled, role, QColor(0x80, 0x84, 0x8a));
    }
    p.setColor(QPalette::PlaceholderText, QColor(0x8e, 0x92, 0x98));
    p.setColor(QPalette::Highlight, QColor(0x2f, 0x7d, 0xc4));
    p.setColor(QPalette::HighlightedText, Qt::white);
    p.setColor(QPalette::Link, QColor(0x6c, 0xb6, 0xff));
    return p;
}

} // namespace planish
