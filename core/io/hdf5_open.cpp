// Opening a file with libhdf5, in the reader process.
#include <hdf5.h>

#include <filesystem>

#include "core/io/file_lock.h"
#include "core/io/hdf5_file.h"

namespace planish {

namespace {

/// The first file-locking or consistency sentence in the error stack, else the innermost one.
std::string openFailure()
{
    struct Found {
        std::string lock, innermost;
    } found;
    H5Ewalk2(
        H5E_DEFAULT, H5E_WALK_UPWARD,
        [](unsigned, const H5E_error2_t *record, void *data) -> herr_t {
            auto &result = *static_cast<Found *>(data);
            const std::string text = record->desc != nullptr ? record->desc : "";
            if (result.innermost.empty())
                result.innermost = text;
            if (result.lock.empty() && isLockFailure(text))
                result.lock = text;
            return 0;
        },
        &found);
    return found.lock.empty() ? found.innermost : found.lock;
}

} // namespace

Expected<std::shared_ptr<const Hdf5File>> Hdf5File::open(const std::string &path, const OpenOptions &options)
{
    const Hdf5Lock lock;
    const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    // A file system that knows no locks is no reason to refuse; a lock somebody holds is.
    H5Pset_file_locking(access.get(), options.noLock ? 0 : 1, 1);
    // A file open for SWMR writing is read again while a writer may be in the middle of an object; the library's own 100 attempts, each
    // after twice the pause, never come to an end on a damaged one.
    constexpr unsigned kAttempts = 5;
    H5Pset_metadata_read_attempts(access.get(), kAttempts);
    auto file = std::make_shared<Hdf5File>();
    file->m_path = path;
    file->m_file = Hdf5Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
    if (!file->m_file) {
        const std::string reason = openFailure();
        file->m_file = Hdf5Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, access.get()), H5Fclose);
        if (!file->m_file && isLockFailure(reason))
            return lockError(path, reason);
        if (!file->m_file)
            return dataError(path, "cannot be opened as HDF5 (" + reason + ")", "an intact HDF5 file");
    }
    if (options.trustLinks) {
        const std::string folder = std::filesystem::path(path).parent_path().string();
        file->m_trustedFolder = folder.empty() ? "." : folder;
    }
    return std::shared_ptr<const Hdf5File>(std::move(file));
}

} // namespace planish
