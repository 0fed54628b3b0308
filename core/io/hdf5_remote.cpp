#include "core/io/hdf5_remote.h"

#include <algorithm>

#include "core/io/hdf5_signature.h"
#include "core/io/printable.h"
#include "core/io/stored_blocks.h"

namespace planish {

namespace {

// A file that stops the reader more often than this is refused whole, so that opening ends within seconds.
constexpr int kMostSpins = 2;
constexpr int kMostDeaths = 32;

class RemoteStructureReader final : public StructureReader {
public:
    Expected<FileStructure> structure(const std::string &file, const OpenOptions &options) override
    {
        Expected<OpenedHdf5> opened = openHdf5(file, options);
        if (!opened)
            return tl::make_unexpected(opened.error());
        return std::move(opened->structure);
    }
};

} // namespace

Error Hdf5Remote::died(const ReaderDeath &death, const std::string &path) const
{
    return {ErrorCode::Data, m_path + (path.empty() ? "" : ":" + printable(path)), death.sentence, "an intact HDF5 file", {}};
}

Expected<FileStructure> Hdf5Remote::structure()
{
    const std::lock_guard lock(m_mutex);
    for (int deaths = 0;; ++deaths) {
        Expected<std::unique_ptr<ReaderProcess>> process = ReaderProcess::start();
        if (!process)
            return tl::make_unexpected(process.error());
        Request request;
        request.open = {m_path, m_options, true, m_leftOut};
        auto answer = (*process)->ask(request);
        if (answer) {
            m_process = std::move(*process);
            return decodeStructure(*answer);
        }
        const ReaderDeath &death = answer.error();
        m_spins += death.spun ? 1 : 0;
        const bool known = std::any_of(m_leftOut.begin(), m_leftOut.end(), [&](const auto &mark) { return mark.first == death.mark; });
        const bool hopeless = death.mark.empty() || death.mark == markOf(ReaderStep::Open, "/") || known;
        if (hopeless || m_spins >= kMostSpins || deaths >= kMostDeaths)
            return tl::make_unexpected(died(death, hopeless ? std::string() : pathOfMark(death.mark)));
        m_leftOut.emplace_back(death.mark, death.sentence + ": refused");
    }
}

/// Starts a reader and opens the file again after one died.
Expected<void> Hdf5Remote::ready()
{
    if (m_process)
        return {};
    Expected<std::unique_ptr<ReaderProcess>> process = ReaderProcess::start();
    if (!process)
        return tl::make_unexpected(process.error());
    Request request;
    request.open = {m_path, m_options, false, {}};
    const auto answer = (*process)->ask(request);
    if (!answer)
        return tl::make_unexpected(died(answer.error(), {}));
    if (const Expected<FileStructure> opened = decodeStructure(*answer); !opened)
        return tl::make_unexpected(opened.error());
    m_process = std::move(*process);
    return {};
}

Expected<std::vector<std::byte>> Hdf5Remote::askAbout(RequestKind kind, const BoxMessage &box)
{
    const std::lock_guard lock(m_mutex);
    if (m_spins >= kMostSpins)
        return tl::make_unexpected(died({{}, "kept the HDF5 library busy without end several times: no more of it is read", true}, box.path));
    if (Expected<void> open = ready(); !open)
        return tl::make_unexpected(open.error());
    Request request;
    request.kind = kind;
    request.box = box;
    auto answer = m_process->ask(request);
    if (answer)
        return std::move(*answer);
    m_process.reset();
    m_spins += answer.error().spun ? 1 : 0;
    return tl::make_unexpected(died(answer.error(), box.path));
}

Expected<StorageMap> Hdf5Remote::storage(const BoxMessage &box)
{
    const Expected<std::vector<std::byte>> answer = askAbout(RequestKind::Storage, box);
    if (!answer)
        return tl::make_unexpected(answer.error());
    return decodeStorage(*answer);
}

Expected<std::vector<std::string>> Hdf5Remote::texts(const std::string &path)
{
    const Expected<std::vector<std::byte>> answer = askAbout(RequestKind::Texts, {path, {}, {}});
    if (!answer)
        return tl::make_unexpected(answer.error());
    return decodeTexts(*answer);
}

Expected<void> Hdf5Remote::read(const BoxMessage &box, std::span<std::byte> out)
{
    const Expected<std::vector<std::byte>> answer = askAbout(RequestKind::Box, box);
    if (!answer)
        return tl::make_unexpected(answer.error());
    return decodeBytes(*answer, out);
}

Expected<OpenedHdf5> openHdf5(const std::string &path, const OpenOptions &options)
{
    Expected<RawFile> raw = RawFile::open(path);
    if (!raw)
        return tl::make_unexpected(raw.error());
    if (const Expected<void> checked = checkSignature(*raw); !checked)
        return tl::make_unexpected(checked.error());
    auto remote = std::make_shared<Hdf5Remote>(path, options);
    Expected<FileStructure> structure = remote->structure();
    if (!structure)
        return tl::make_unexpected(structure.error());
    return OpenedHdf5{std::move(*structure), makeStoredBlocks(std::move(remote), std::move(*raw))};
}

std::unique_ptr<StructureReader> makeStructureReader()
{
    return std::make_unique<RemoteStructureReader>();
}

} // namespace planish
