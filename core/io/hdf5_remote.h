// An HDF5 file as this program sees it: the structure a reader process handed back as a value, and blocks of bytes that are read here.
// libhdf5 never reads in this process.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "core/io/block_source.h"
#include "core/io/file_structure.h"
#include "core/io/raw_file.h"
#include "core/io/reader_process.h"

namespace planish {

/// Asks a reader process about one file and starts another when it dies. Thread-safe; one request at a time.
class Hdf5Remote {
public:
    Hdf5Remote(std::string path, const OpenOptions &options) : m_path(std::move(path)), m_options(options) {}

    /// The whole structure. What kills or stops the reader is refused by path and left out; the rest is read.
    Expected<FileStructure> structure();
    Expected<StorageMap> storage(const BoxMessage &box);
    Expected<std::vector<std::string>> texts(const std::string &path);
    Expected<void> read(const BoxMessage &box, std::span<std::byte> out);

    const std::string &path() const { return m_path; }

private:
    Expected<std::vector<std::byte>> askAbout(RequestKind kind, const BoxMessage &box);
    Expected<void> ready();
    Error died(const ReaderDeath &death, const std::string &path) const;

    std::string m_path;
    OpenOptions m_options;
    std::mutex m_mutex;
    std::unique_ptr<ReaderProcess> m_process;
    LeftOut m_leftOut;
    int m_spins = 0; ///< readers that were ended because they did not come to an end
};

/// A file with its structure and its numbers.
struct OpenedHdf5 {
    FileStructure structure;
    std::unique_ptr<BlockSource> source;
};

/// Errors: not HDF5, truncated, locked, damaged, reader missing; each names the file.
Expected<OpenedHdf5> openHdf5(const std::string &path, const OpenOptions &options);

/// The seam as an object: opens, reads the structure, closes.
std::unique_ptr<StructureReader> makeStructureReader();

} // namespace planish
