// What the window remembers between runs: one struct, one load, one save.
#pragma once

#include <QByteArray>
#include <QStringList>

namespace planish {

enum class Theme { System, Light, Dark };

struct Settings {
    QStringList recent; ///< newest first
    Theme theme = Theme::System;
    QByteArray geometry, layout;
};

Settings loadSettings();
void saveSettings(const Settings &settings);
/// Puts a file in front of the recent list, at most ten.
void remember(Settings &settings, const QString &file);

/// smollm2.h5 of the source tree or of the installed data; empty when neither is there.
QString sampleFile();

} // namespace planish
