// planish [FILE] [--weights W] | --tour DIR [FILE] | --version | --help. Flags that need no window are answered before one is made.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <QApplication>
#include <QStyleFactory>
#include <QTimer>

#include "app/main_window.h"
#include "app/tour.h"

namespace {

constexpr const char *kUsage = "planish [FILE] [--weights W] [--backend cpu|cuda|reference] [--threads N]\n"
                               "planish --tour DIR [FILE] [--weights W]   visits every screen, saves a picture of each and tour.txt\n"
                               "planish --version | --help\n"
                               "Everything the window computes is also printed by planish-cli.\n";

struct Arguments {
    std::string file, weights, tour;
    planish::GlobalOptions global;
    std::optional<int> done; ///< exit status when nothing is left to do
};

int fail(const std::string &text)
{
    std::fprintf(stderr, "error: %s\n", text.c_str());
    return 2;
}

Arguments parse(const std::vector<std::string> &words)
{
    Arguments a;
    for (std::size_t i = 0; i < words.size() && !a.done; ++i) {
        const std::string &word = words[i];
        const auto value = [&](std::string &target) {
            if (i + 1 >= words.size()) {
                a.done = fail(word + ": no value; " + word + " VALUE expected");
            } else {
                target = words[++i];
            }
        };
        std::string threads;
        if (word == "--help" || word == "-h") {
            std::fputs(kUsage, stdout);
            a.done = 0;
        } else if (word == "--version") {
            std::printf("planish %s\n", PLANISH_VERSION);
            a.done = 0;
        } else if (word == "--weights") {
            value(a.weights);
        } else if (word == "--tour") {
            value(a.tour);
        } else if (word == "--backend") {
            value(a.global.backend);
        } else if (word == "--threads") {
            value(threads);
            a.global.threads = std::atoi(threads.c_str());
        } else if (word.starts_with("-")) {
            a.done = fail(word + ": unknown flag; --weights, --tour, --backend, --threads, --version or --help expected");
        } else if (a.file.empty()) {
            a.file = word;
        } else {
            a.done = fail(word + ": a second file; one FILE expected (a checkpoint goes behind --weights)");
        }
    }
    return a;
}

} // namespace

int main(int argc, char **argv)
{
    const Arguments arguments = parse({argv + 1, argv + argc});
    if (arguments.done) {
        return *arguments.done;
    }
    const bool display = std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr;
    if (std::getenv("QT_QPA_PLATFORM") == nullptr && !display) {
        if (arguments.tour.empty()) {
            return fail("display: neither DISPLAY nor WAYLAND_DISPLAY is set; a desktop, planish --tour DIR, or planish-cli expected");
        }
        setenv("QT_QPA_PLATFORM", "offscreen", 1);
    }
    QApplication app(argc, argv);
    QApplication::setApplicationName(QStringLiteral("planish"));
    QApplication::setApplicationVersion(QStringLiteral(PLANISH_VERSION));
    QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
    auto engine = planish::Engine::create(arguments.global);
    if (!engine) {
        std::fprintf(stderr, "error: %s\n", planish::toText(engine.error()).c_str());
        return planish::exitCode(engine.error());
    }
    const QString file = QString::fromStdString(arguments.file), weights = QString::fromStdString(arguments.weights);
    if (!arguments.tour.empty()) {
        const auto toured = planish::runTour(*engine, QString::fromStdString(arguments.tour), file, weights);
        if (!toured) {
            std::fprintf(stderr, "error: %s\n", planish::toText(toured.error()).c_str());
            return planish::exitCode(toured.error());
        }
        return 0;
    }
    planish::MainWindow window(*engine, planish::Remember::Yes);
    window.show();
    if (!file.isEmpty()) {
        QTimer::singleShot(0, &window, [&window, file, weights] { window.openFile(file, weights); });
    }
    return QApplication::exec();
}
