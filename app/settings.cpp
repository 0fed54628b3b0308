#include "app/settings.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QSettings>

namespace planish {

namespace {
constexpr qsizetype kRecent = 10;
} // namespace

Settings loadSettings()
{
    const QSettings store(QSettings::IniFormat, QSettings::UserScope, QStringLiteral("planish"), QStringLiteral("window"));
    Settings settings;
    settings.recent = store.value("recent").toStringList();
    settings.theme = static_cast<Theme>(qBound(0, store.value("theme", 0).toInt(), 2));
    settings.geometry = store.value("geometry").toByteArray();
    settings.layout = store.value("layout").toByteArray();
    return settings;
}

void saveSettings(const Settings &settings)
{
    QSettings store(QSettings::IniFormat, QSettings::UserScope, QStringLiteral("planish"), QStringLiteral("window"));
    store.setValue("recent", settings.recent);
    store.setValue("theme", static_cast<int>(settings.theme));
    store.setValue("geometry", settings.geometry);
    store.setValue("layout", settings.layout);
}

void remember(Settings &settings, const QString &file)
{
    const QString absolute = QFileInfo(file).absoluteFilePath();
    settings.recent.removeAll(absolute);
    settings.recent.prepend(absolute);
    settings.recent = settings.recent.mid(0, kRecent);
}

QString sampleFile()
{
    const QDir bin(QCoreApplication::applicationDirPath());
    for (const QString &folder : {bin.filePath("../../../sample_data"), bin.filePath("../share/planish/sample_data")}) {
        const QFileInfo file(QDir(folder).filePath("smollm2.h5"));
        if (file.exists()) {
            return QDir::cleanPath(file.absoluteFilePath());
        }
    }
    return {};
}

} // namespace planish
