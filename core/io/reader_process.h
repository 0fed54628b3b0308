// Owner of one reader process (planish-reader): starts it, asks, and ends it when it dies, falls silent or spins.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/io/reader_protocol.h"

namespace planish {

/// The executable beside this program's own. Errors: it is missing (names where it was looked for).
Expected<std::string> readerProgram();

/// How a reader ended without an answer.
struct ReaderDeath {
    std::string mark;     ///< what it worked on (reader_protocol.h), may be empty
    std::string sentence; ///< "crashed the HDF5 library (signal 11)", "kept the HDF5 library busy for more than 1 s"
    bool spun = false;    ///< it was ended because it did not come to an end
};

/// One child process. Thread: one caller at a time.
class ReaderProcess {
public:
    /// Errors: the program is missing, the machine has no more processes.
    static Expected<std::unique_ptr<ReaderProcess>> start();
    ~ReaderProcess(); ///< ends the child at once; it holds nothing that could be lost
    ReaderProcess(const ReaderProcess &) = delete;
    ReaderProcess &operator=(const ReaderProcess &) = delete;

    /// The answer, or how the reader died over the request. After a death the process is gone; start another.
    tl::expected<std::vector<std::byte>, ReaderDeath> ask(const Request &request);

private:
    ReaderProcess() = default;
    bool spawn(const std::string &program, int childSocket, int page);
    bool awaitBytes(std::span<std::byte> out);
    bool stillWorks();
    double cpuSeconds() const;
    ReaderDeath end();

    pid_t m_child = -1;
    int m_socket = -1;
    ReaderPage *m_page = nullptr;
    std::uint64_t m_steps = 0;        ///< of the reader when it last got on
    double m_cpuAllowed = 1.0;        ///< processor seconds without getting on
    double m_cpuThen = 0.0;           ///< its processor time then
    double m_wallThen = 0.0;          ///< and the clock
    std::optional<std::string> m_why; ///< why it was ended by us
    bool m_spun = false;
};

} // namespace planish
