#include "core/io/hdf5_handle.h"

#include <hdf5.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

namespace planish {

namespace {

std::recursive_mutex &libraryMutex()
{
    static std::recursive_mutex mutex;
    return mutex;
}

void prepareLibrary()
{
    // Files decide what is read, not the environment of whoever opens them.
    for (const char *name : {"HDF5_EXT_PREFIX", "HDF5_EXTFILE_PREFIX", "HDF5_VDS_PREFIX", "HDF5_PLUGIN_PATH"})
        ::unsetenv(name);
    H5open();
    H5PLset_loading_state(0);
}

herr_t keepInnermost(unsigned, const H5E_error2_t *record, void *text)
{
    auto &reason = *static_cast<std::string *>(text);
    if (reason.empty() && record->desc != nullptr)
        reason = record->desc;
    return 0;
}

/// Called by the library before it follows an external link; `data` is the trusted folder, which lives as long as the program.
herr_t allowExternal(const char *, const char *, const char *childFile, const char *, unsigned *flags, hid_t, void *data)
{
    *flags = H5F_ACC_RDONLY;
    return data != nullptr && insideFolder(*static_cast<const std::string *>(data), childFile) ? 0 : -1;
}

/// Access lists keep a pointer to the folder's text, so it has to outlive them.
void *lastingText(const std::string &folder)
{
    static std::set<std::string> texts;
    return folder.empty() ? nullptr : const_cast<std::string *>(&*texts.insert(folder).first);
}

} // namespace

Hdf5Lock::Hdf5Lock() : m_lock(libraryMutex())
{
    static const bool prepared = (prepareLibrary(), true);
    static_cast<void>(prepared);
    thread_local bool quiet = false;
    if (!quiet) {
        H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
        quiet = true;
    }
}

Hdf5Handle::Hdf5Handle(Hdf5Handle &&other) noexcept : m_id(std::exchange(other.m_id, -1)), m_close(other.m_close) {}

Hdf5Handle &Hdf5Handle::operator=(Hdf5Handle &&other) noexcept
{
    if (this != &other) {
        close();
        m_id = std::exchange(other.m_id, -1);
        m_close = other.m_close;
    }
    return *this;
}

Hdf5Handle::~Hdf5Handle()
{
    close();
}

void Hdf5Handle::close()
{
    if (m_id < 0)
        return;
    const Hdf5Lock lock;
    m_close(m_id);
    m_id = -1;
}

std::string hdf5Reason()
{
    std::string reason;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keepInnermost, &reason);
    return reason.empty() ? "the library gives no reason" : reason;
}

std::string hdf5Version()
{
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    H5get_libversion(&major, &minor, &release);
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

Hdf5Handle linkAccess(const std::string &trustedFolder)
{
    Hdf5Handle list(H5Pcreate(H5P_LINK_ACCESS), H5Pclose);
    H5Pset_elink_cb(list.get(), allowExternal, lastingText(trustedFolder));
    return list;
}

Hdf5Handle datasetAccess(const std::string &trustedFolder, std::size_t chunkCacheBytes)
{
    Hdf5Handle list(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
    H5Pset_elink_cb(list.get(), allowExternal, lastingText(trustedFolder));
    if (!trustedFolder.empty()) {
        // Names of other files are meant from the file's own folder, not from where the program was started.
        H5Pset_efile_prefix(list.get(), "${ORIGIN}");
        H5Pset_virtual_prefix(list.get(), "${ORIGIN}");
    }
    if (chunkCacheBytes > 0)
        H5Pset_chunk_cache(list.get(), H5D_CHUNK_CACHE_NSLOTS_DEFAULT, chunkCacheBytes, H5D_CHUNK_CACHE_W0_DEFAULT);
    return list;
}

bool insideFolder(const std::string &folder, const std::string &target)
{
    namespace fs = std::filesystem;
    std::error_code failed;
    const fs::path root = fs::canonical(folder.empty() ? "." : folder, failed);
    if (failed || target.empty())
        return false;
    const fs::path wanted(target);
    const fs::path resolved = fs::canonical(wanted.is_absolute() ? wanted : root / wanted, failed);
    if (failed)
        return false;
    const fs::path relative = resolved.lexically_relative(root);
    return !relative.empty() && *relative.begin() != "..";
}

} // namespace planish
