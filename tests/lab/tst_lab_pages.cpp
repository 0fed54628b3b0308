// The pages of the failure lab that Help shows: every failure listed there has its test, and every test of the lab its page.
#include <QtTest>

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QRegularExpression>
#include <QSet>

class TestLabPages : public QObject {
    Q_OBJECT

    static QString contentOf(const QString &path)
    {
        QFile file(path);
        return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
    }

private slots:
    void everyPageHasItsTestAndEveryTestItsPage()
    {
        QSet<QString> tests, pages;
        static const QRegularExpression slot("\n    void (\\w+)\\(\\)\n");
        const QDir folder(PLANISH_SOURCE_DIR "/tests/lab");
        for (const QString &name : folder.entryList({"tst_lab_*.cpp"})) {
            if (name == "tst_lab_pages.cpp")
                continue;
            auto found = slot.globalMatch(contentOf(folder.filePath(name)));
            while (found.hasNext())
                tests.insert(found.next().captured(1));
        }
        const auto lab = QJsonDocument::fromJson(contentOf(PLANISH_SOURCE_DIR "/resources/failure_lab.json").toUtf8()).object();
        for (const QJsonValue &entry : lab["failures"].toArray()) {
            QVERIFY(!pages.contains(entry["test"].toString()));
            pages.insert(entry["test"].toString());
            for (const char *key : {"group", "name", "happens", "caught", "sentence"})
                QVERIFY2(!entry[QLatin1String(key)].toString().isEmpty(), qPrintable(entry["test"].toString() + " " + key));
        }
        QVERIFY(pages.size() > 20);
        QCOMPARE(QStringList((pages - tests).values()), QStringList());
        QCOMPARE(QStringList((tests - pages).values()), QStringList());
    }
};

QTEST_GUILESS_MAIN(TestLabPages)
#include "tst_lab_pages.moc"
