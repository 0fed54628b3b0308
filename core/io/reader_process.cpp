#include "core/io/reader_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <new>

#include "core/io/reader_socket.h"

extern char **environ;

namespace planish {

namespace {

// Processor time one object may take: describing one takes microseconds, an endless loop takes all it can get. A disk that is slow to
// answer costs no processor time, so silence is given longer.
double cpuSecondsFor(RequestKind kind)
{
    switch (kind) {
    case RequestKind::Box:
        return 3.0; // one chunk of 128 MiB through a slow filter
    case RequestKind::Open:
        return 0.5; // from one object to the next
    default:
        return 2.0; // the index of four million chunks
    }
}
constexpr double kSilentSeconds = 20.0;
constexpr int kPollMilliseconds = 50;

double clockSeconds(clockid_t clock)
{
    timespec time{};
    return ::clock_gettime(clock, &time) == 0 ? static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec) : 0.0;
}

/// The environment without what steers HDF5: files decide what is read, not whoever opens them.
std::vector<char *> childEnvironment()
{
    std::vector<char *> kept;
    for (char **entry = environ; *entry != nullptr; ++entry)
        if (std::strncmp(*entry, "HDF5_", 5) != 0)
            kept.push_back(*entry);
    kept.push_back(nullptr);
    return kept;
}

tl::unexpected<Error> noProcess(const char *what)
{
    return machineError("planish-reader", std::string("cannot be started (") + what + ": " + std::strerror(errno) + ")",
                        "a machine with free processes and memory");
}

} // namespace

Expected<std::string> readerProgram()
{
    std::error_code failed;
    const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", failed);
    const std::filesystem::path beside = own.parent_path() / "planish-reader";
    if (!failed && ::access(beside.c_str(), X_OK) == 0)
        return beside.string();
    return machineError("planish-reader", "is missing: HDF5 files are read by this helper program",
                        "it as " + (failed ? std::string("a neighbour of this program") : beside.string()) +
                            " (the package and the build put it there)");
}

Expected<std::unique_ptr<ReaderProcess>> ReaderProcess::start()
{
    const Expected<std::string> program = readerProgram();
    if (!program)
        return tl::make_unexpected(program.error());
    std::unique_ptr<ReaderProcess> process(new ReaderProcess());
    const int page = ::memfd_create("planish-reader", MFD_CLOEXEC);
    if (page < 0 || ::ftruncate(page, sizeof(ReaderPage)) != 0)
        return noProcess("memory");
    void *mapped = ::mmap(nullptr, sizeof(ReaderPage), PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
    int sockets[2]{-1, -1};
    const bool ready = mapped != MAP_FAILED && ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0;
    if (mapped != MAP_FAILED)
        process->m_page = static_cast<ReaderPage *>(mapped);
    process->m_socket = sockets[0];
    const bool spawned = ready && process->spawn(*program, sockets[1], page);
    const int reason = errno;
    ::close(page);
    if (sockets[1] >= 0)
        ::close(sockets[1]);
    errno = reason;
    if (!spawned)
        return noProcess("process");
    return process;
}

bool ReaderProcess::spawn(const std::string &program, int childSocket, int page)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    // Copies above the two wanted numbers first, so that neither overwrites the other.
    const int socketCopy = ::fcntl(childSocket, F_DUPFD_CLOEXEC, 10);
    const int pageCopy = ::fcntl(page, F_DUPFD_CLOEXEC, 10);
    ::posix_spawn_file_actions_adddup2(&actions, socketCopy, kReaderSocket);
    ::posix_spawn_file_actions_adddup2(&actions, pageCopy, kReaderPage);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    // What a dying library prints is no message of ours.
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        ::posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0);
#endif
    ::posix_spawn_file_actions_addclosefrom_np(&actions, kReaderPage + 1);
    // Signals this program waits for in a thread of its own are blocked here; the child starts with none blocked.
    sigset_t none;
    sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    std::string name = "planish-reader";
    char *const arguments[]{name.data(), nullptr};
    const std::vector<char *> environment = childEnvironment();
    const int failed = socketCopy < 0 || pageCopy < 0
                           ? EMFILE
                           : ::posix_spawn(&m_child, program.c_str(), &actions, &attributes, arguments, environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
    if (socketCopy >= 0)
        ::close(socketCopy);
    if (pageCopy >= 0)
        ::close(pageCopy);
    errno = failed;
    if (failed != 0)
        m_child = -1;
    return failed == 0;
}

ReaderProcess::~ReaderProcess()
{
    end();
    if (m_page != nullptr)
        ::munmap(m_page, sizeof(ReaderPage));
}

double ReaderProcess::cpuSeconds() const
{
    clockid_t clock{};
    return ::clock_getcpuclockid(m_child, &clock) == 0 ? clockSeconds(clock) : 0.0;
}

/// False when the reader has done nothing new for too long; then `m_why` says what it did instead.
bool ReaderProcess::stillWorks()
{
    const std::uint64_t steps = m_page->steps.load(std::memory_order_relaxed);
    const double cpu = cpuSeconds();
    const double wall = clockSeconds(CLOCK_MONOTONIC);
    if (steps != m_steps) {
        m_steps = steps;
        m_cpuThen = cpu;
        m_wallThen = wall;
        return true;
    }
    if (cpu - m_cpuThen > m_cpuAllowed) {
        m_why = "kept the HDF5 library busy without end";
        m_spun = true;
        return false;
    }
    if (wall - m_wallThen > kSilentSeconds) {
        m_why = "gave no answer for " + std::to_string(static_cast<int>(kSilentSeconds)) + " s";
        return false;
    }
    return true;
}

bool ReaderProcess::awaitBytes(std::span<std::byte> out)
{
    while (!out.empty()) {
        pollfd wait{m_socket, POLLIN, 0};
        const int ready = ::poll(&wait, 1, kPollMilliseconds);
        if (ready < 0 && errno != EINTR)
            return false;
        const long got = receiveSome(m_socket, out);
        if (got == 0 || (got < 0 && !stillWorks()))
            return false;
        if (got > 0) {
            out = out.subspan(static_cast<std::size_t>(got));
            m_cpuThen = cpuSeconds();
            m_wallThen = clockSeconds(CLOCK_MONOTONIC);
        }
    }
    return true;
}

/// Ends the child and says how it went.
ReaderDeath ReaderProcess::end()
{
    ReaderDeath death;
    if (m_socket >= 0)
        ::close(m_socket);
    m_socket = -1;
    if (m_child < 0)
        return death;
    if (m_page != nullptr)
        death.mark.assign(m_page->place.data(), ::strnlen(m_page->place.data(), m_page->place.size()));
    int status = 0;
    // A child that closed the socket is dying or dead: its own end is the better story.
    const bool ended = !m_why && ::waitpid(m_child, &status, WNOHANG) == m_child;
    if (!ended) {
        ::kill(m_child, SIGKILL);
        while (::waitpid(m_child, &status, 0) < 0 && errno == EINTR) {
        }
    }
    m_child = -1;
    death.spun = m_spun;
    if (m_why)
        death.sentence = *m_why;
    else if (WIFSIGNALED(status))
        death.sentence = "crashed the HDF5 library (signal " + std::to_string(WTERMSIG(status)) + ")";
    else
        death.sentence = "ended the HDF5 reader (exit " + std::to_string(WEXITSTATUS(status)) + ")";
    return death;
}

tl::expected<std::vector<std::byte>, ReaderDeath> ReaderProcess::ask(const Request &request)
{
    m_cpuAllowed = cpuSecondsFor(request.kind);
    m_cpuThen = cpuSeconds();
    m_wallThen = clockSeconds(CLOCK_MONOTONIC);
    std::uint64_t size = 0;
    std::vector<std::byte> answer;
    if (m_child >= 0 && sendFrame(m_socket, encode(request)) && awaitBytes(std::as_writable_bytes(std::span(&size, 1)))) {
        if (size <= kLongestAnswer) {
            answer.resize(static_cast<std::size_t>(size));
            if (awaitBytes(answer))
                return answer;
        } else {
            m_why = "made the HDF5 reader answer with " + std::to_string(size) + " bytes";
        }
    }
    return tl::make_unexpected(end());
}

} // namespace planish
