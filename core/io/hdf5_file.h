// An HDF5 file opened for reading: the structure reader and the block source over it. No HDF5 name appears in this header.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/io/block_source.h"
#include "core/io/file_structure.h"
#include "core/io/hdf5_handle.h"

namespace planish {

/// Keeps the file open; structure and blocks come from the same moment. Thread-safe by the library lock.
class Hdf5File {
public:
    /// Errors: not HDF5, truncated ("holds N of M bytes"), locked (names --no-lock).
    static Expected<std::shared_ptr<const Hdf5File>> open(const std::string &path, const OpenOptions &options);

    const std::string &path() const { return m_path; }
    std::int64_t id() const { return m_file.get(); }
    /// Folder whose files external links may reach; empty without --trust-links.
    const std::string &trustedFolder() const { return m_trustedFolder; }

private:
    std::string m_path, m_trustedFolder;
    Hdf5Handle m_file;
};

/// Groups, datasets, refused objects and notes of the whole file.
Expected<FileStructure> readStructure(const Hdf5File &file);
/// Stored bytes of its datasets.
std::unique_ptr<BlockSource> makeBlockSource(std::shared_ptr<const Hdf5File> file);

/// The seam as an object: opens, reads the structure, closes.
std::unique_ptr<StructureReader> makeStructureReader();

} // namespace planish
