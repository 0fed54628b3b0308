// An HDF5 file opened by libhdf5 for reading; used by the reader process only (core/io/hdf5_server.h), never by the program itself.
// No HDF5 name appears in this header.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/io/file_structure.h"
#include "core/io/hdf5_handle.h"
#include "core/io/reader_marks.h"

namespace planish {

/// Keeps the file open; structure and blocks come from the same moment. Thread-safe by the library lock.
class Hdf5File {
public:
    /// Errors: damaged, locked (names --no-lock). What can be told without the library (hdf5_signature.h) was told before.
    static Expected<std::shared_ptr<const Hdf5File>> open(const std::string &path, const OpenOptions &options);

    const std::string &path() const { return m_path; }
    std::int64_t id() const { return m_file.get(); }
    /// Folder whose files external links may reach; empty without --trust-links.
    const std::string &trustedFolder() const { return m_trustedFolder; }

private:
    std::string m_path, m_trustedFolder;
    Hdf5Handle m_file;
};

/// Groups, datasets, refused objects and notes of the whole file, without what `marks` leave out.
Expected<FileStructure> readStructure(const Hdf5File &file, ReaderMarks &marks);

} // namespace planish
