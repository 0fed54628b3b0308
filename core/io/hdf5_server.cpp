#include "core/io/hdf5_server.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <new>
#include <optional>

#include "core/io/hdf5_box.h"
#include "core/io/reader_socket.h"

namespace planish {

namespace {

// A box of 512 MiB, its answer and the library's own tables fit; a file that asks for more is refused by the allocator.
constexpr rlim_t kMostMemory = rlim_t{3} << 30;
constexpr rlim_t kSecondsOfRequest = 60;

void limit(int what, rlim_t most)
{
    const rlimit limits{most, most};
    ::setrlimit(static_cast<__rlimit_resource>(what), &limits);
}

void limitProcess()
{
    // The parent decides when this process ends; Ctrl-C is meant for the parent.
    std::signal(SIGINT, SIG_IGN);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    limit(RLIMIT_AS, kMostMemory);
#endif
}

/// An endless loop ends even when nobody is left to end it.
void limitRequest()
{
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    rlimit limits{};
    ::getrlimit(RLIMIT_CPU, &limits);
    limits.rlim_cur = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + kSecondsOfRequest;
    ::setrlimit(RLIMIT_CPU, &limits);
}

class Server {
public:
    explicit Server(ReaderPage *page) : m_marks(page) {}

    std::vector<std::byte> answer(std::span<const std::byte> bytes)
    {
        const Expected<Request> request = decodeRequest(bytes);
        if (!request)
            return encodeError(request.error());
        if (request->kind == RequestKind::Open)
            return open(request->open);
        if (!m_boxes)
            return encodeError({ErrorCode::Data, "planish-reader", "was asked before a file was open", "a file first", {}});
        m_marks.enter(ReaderStep::Object, request->box.path);
        switch (request->kind) {
        case RequestKind::Storage:
            return told(m_boxes->storage(request->box));
        case RequestKind::Texts:
            return told(m_boxes->texts(request->box.path));
        default: {
            const Expected<std::vector<std::byte>> box = m_boxes->read(request->box);
            return box ? encodeBytes(*box) : encodeError(box.error());
        }
        }
    }

private:
    template <class T> static std::vector<std::byte> told(const Expected<T> &value)
    {
        return value ? encode(*value) : encodeError(value.error());
    }

    std::vector<std::byte> open(const OpenMessage &message)
    {
        m_marks.leaveOut(message.leftOut);
        m_marks.enter(ReaderStep::Open, "/");
        const auto file = Hdf5File::open(message.path, message.options);
        if (!file)
            return encodeError(file.error());
        m_boxes.emplace(*file);
        FileStructure structure;
        structure.file = message.path;
        return message.wantStructure ? told(readStructure(**file, m_marks)) : encode(structure);
    }

    ReaderMarks m_marks;
    std::optional<Hdf5Boxes> m_boxes;
};

ReaderPage *mapPage()
{
    void *page = ::mmap(nullptr, sizeof(ReaderPage), PROT_READ | PROT_WRITE, MAP_SHARED, kReaderPage, 0);
    return page == MAP_FAILED ? nullptr : static_cast<ReaderPage *>(page);
}

} // namespace

int serveHdf5()
{
    limitProcess();
    Server server(mapPage());
    std::vector<std::byte> bytes;
    while (receiveFrame(kReaderSocket, bytes)) {
        limitRequest();
        std::vector<std::byte> answer;
        try {
            answer = server.answer(bytes);
        } catch (const std::bad_alloc &) {
            answer = encodeError(
                {ErrorCode::Data, "planish-reader", "needs more memory than it may take", "objects of a sensible size", {}});
        }
        if (!sendFrame(kReaderSocket, answer))
            return 1;
    }
    return 0;
}

} // namespace planish
