#include <QDir>
#include <QFontMetrics>
#include <QImage>
#include <QTemporaryDir>
#include <QTest>

#include "app/tour.h"
#include "tests/support/tiny_dump.h"

using namespace planish;

class TestTour : public QObject {
    Q_OBJECT
    static bool oneColour(const QImage &image)
    {
        const QRgb first = image.pixel(0, 0);
        for (int y = 0; y < image.height(); ++y) {
            for (int x = 0; x < image.width(); ++x) {
                if (image.pixel(x, y) != first) {
                    return false;
                }
            }
        }
        return true;
    }

public:
    static void initMain()
    {
        if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) {
            qputenv("QT_QPA_PLATFORM", "offscreen");
        }
    }

private slots:
    void fontsAreReal()
    {
        // Without fonts pictures are boxes: every letter is then equally wide.
        const QFontMetrics metrics((QFont()));
        QVERIFY(metrics.horizontalAdvance("iiii") < metrics.horizontalAdvance("WWWW"));
    }

    void everyScreenIsSavedAndShowsSomething()
    {
        QTemporaryDir folder;
        const QString file = QString::fromStdString(test::writeTinyDump(folder.path().toStdString()));
        const auto engine = Engine::create({});
        QVERIFY(engine.has_value());
        const QString out = folder.filePath("tour");
        const auto toured = runTour(*engine, out, file, {});
        QVERIFY2(toured.has_value(), toured ? "" : toText(toured.error()).c_str());
        for (const char *name : {"start", "map", "map_layers", "map_worst_first", "geometry", "try", "sweep", "compare", "compare_histograms", "compare_layers", "plan", "map_dark", "geometry_dark", "try_dark",
                                 "plan_dark", "help_numbers", "help_failure_lab"}) {
            const QImage image(QDir(out).filePath(QString(name) + ".png"));
            QVERIFY2(!image.isNull(), name);
            QVERIFY2(image.width() >= 400 && !oneColour(image), name);
        }
        QFile text(QDir(out).filePath("tour.txt"));
        QVERIFY(text.open(QIODevice::ReadOnly));
        const QString numbers = QString::fromUtf8(text.readAll());
        QVERIFY(numbers.contains("layers.0.attn_in") && numbers.contains("smoothquant alpha=0.5"));
    }

    void aFileThatIsNoDumpEndsWithASentence()
    {
        QTemporaryDir folder;
        const QString file = folder.filePath("not.h5");
        QFile out(file);
        QVERIFY(out.open(QIODevice::WriteOnly) && out.write("text") == 4);
        out.close();
        const auto engine = Engine::create({});
        const auto toured = runTour(*engine, folder.filePath("tour"), file, {});
        QVERIFY(!toured.has_value());
        QVERIFY(toText(toured.error()).find("not.h5") != std::string::npos);
    }
};

QTEST_MAIN(TestTour)
#include "tst_tour.moc"
