#include "app/cli/print.h"

#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <mutex>

#include <unistd.h>

#include "core/run/envelope.h"

namespace planish::cli {

namespace {

using Json = nlohmann::ordered_json;

bool isScalar(const Json &value) { return !value.is_object() && !value.is_array(); }

std::string scalarText(const Json &value)
{
    if (value.is_number_float()) {
        char text[40];
        std::snprintf(text, sizeof text, "%.9g", value.get<double>());
        return text;
    }
    return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Long lists of numbers are pictures, not text: their length is said instead.
constexpr std::size_t kShownNumbers = 12;

void printValue(const std::string &key, const Json &value, int indent);

void printList(const std::string &key, const Json &list, int indent)
{
    const std::string pad(std::size_t(indent), ' ');
    bool scalars = true;
    for (const Json &each : list)
        scalars = scalars && isScalar(each);
    if (scalars) {
        std::string line;
        for (std::size_t i = 0; i < list.size() && i < kShownNumbers; ++i)
            line += (i ? ", " : "") + scalarText(list[i]);
        if (list.size() > kShownNumbers)
            line += ", … (" + std::to_string(list.size()) + " in all; --json prints them)";
        std::cout << pad << key << ": " << line << '\n';
        return;
    }
    std::cout << pad << key << ":\n";
    for (const Json &each : list) {
        if (isScalar(each)) {
            std::cout << pad << "  - " << scalarText(each) << '\n';
            continue;
        }
        std::cout << pad << "  -\n";
        if (each.is_object()) {
            for (const auto &[name, inner] : each.items())
                printValue(name, inner, indent + 4);
        } else {
            printList("values", each, indent + 4);
        }
    }
}

void printValue(const std::string &key, const Json &value, int indent)
{
    const std::string pad(std::size_t(indent), ' ');
    if (value.is_object()) {
        std::cout << pad << key << ":\n";
        for (const auto &[name, inner] : value.items())
            printValue(name, inner, indent + 2);
    } else if (value.is_array()) {
        if (!value.empty())
            printList(key, value, indent);
    } else {
        std::cout << pad << key << ": " << scalarText(value) << '\n';
    }
}

} // namespace

void print(const Arguments &arguments, const Json &object)
{
    if (arguments.json) {
        std::cout << dumpJson(object) << std::endl;
        return;
    }
    if (arguments.quiet)
        return;
    for (const auto &[key, value] : object.items())
        printValue(key, value, 0);
    std::cout.flush();
}

int printError(const Error &error)
{
    std::cerr << "error: " << toText(error) << std::endl;
    return exitCode(error);
}

ProgressSink progressPrinter(const Arguments &arguments)
{
    if (arguments.quiet || !(arguments.progress || isatty(STDERR_FILENO)))
        return {};
    struct State {
        std::mutex mutex;
        std::chrono::steady_clock::time_point last{};
    };
    auto state = std::make_shared<State>();
    return [state](const ProgressReport &report) {
        const std::scoped_lock lock(state->mutex);
        const auto now = std::chrono::steady_clock::now();
        if (now - state->last < std::chrono::milliseconds(200) && report.done < report.total)
            return;
        state->last = now;
        std::fprintf(stderr, "progress: %s %.6g/%.6g %s", report.stage.c_str(), report.done, report.total, report.unit.c_str());
        if (report.secondsLeft >= 0)
            std::fprintf(stderr, " %.1f", report.secondsLeft);
        std::fputc('\n', stderr);
    };
}

} // namespace planish::cli
