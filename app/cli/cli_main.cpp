// planish-cli: parses, runs one verb, gives the exit code of cli.md. SIGINT and SIGTERM ask the verb to stop (exit 3).
#include <csignal>
#include <ctime>
#include <exception>
#include <iostream>
#include <new>
#include <thread>

#include "app/cli/print.h"
#include "app/cli/verbs.h"

namespace planish::cli {

namespace {

/// Waits for the signals in a thread of its own, so that no code runs inside a signal handler.
class SignalWatch {
public:
    SignalWatch()
    {
        sigemptyset(&m_signals);
        sigaddset(&m_signals, SIGINT);
        sigaddset(&m_signals, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &m_signals, nullptr);
        m_thread = std::jthread([this](std::stop_token done) { wait(done); });
    }
    std::stop_token token() const { return m_source.get_token(); }

private:
    void wait(std::stop_token done)
    {
        const timespec patience{0, 50'000'000};
        while (!done.stop_requested()) {
            if (sigtimedwait(&m_signals, nullptr, &patience) > 0)
                m_source.request_stop();
        }
    }
    sigset_t m_signals{};
    std::stop_source m_source;
    std::jthread m_thread;
};

int run(int argc, char **argv)
{
    auto parsed = parseArguments(argc, argv);
    if (!parsed)
        return printError(parsed.error());
    if (const Finished *finished = std::get_if<Finished>(&*parsed))
        return finished->code;
    const Arguments &arguments = std::get<Arguments>(*parsed);
    const SignalWatch watch;
    const Invocation invocation{arguments, watch.token(), progressPrinter(arguments)};
    return findVerb(arguments.verb)(invocation);
}

} // namespace

} // namespace planish::cli

int main(int argc, char **argv)
{
    using planish::Error;
    using planish::ErrorCode;
    try {
        return planish::cli::run(argc, argv);
    } catch (const std::bad_alloc &) {
        return planish::cli::printError(Error{ErrorCode::Machine, "planish-cli", "out of memory", "more free memory, or fewer --rows", {}});
    } catch (const std::exception &error) {
        return planish::cli::printError(Error{ErrorCode::Machine, "planish-cli", error.what(), "no internal fault (please report this)", {}});
    }
}
