// Inside core/io only, in the reader process: what libhdf5 itself has to read. Boxes of stored bytes, texts, and where the bytes of a
// dataset lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/io/hdf5_file.h"
#include "core/io/raw_file.h"
#include "core/io/reader_protocol.h"

namespace planish {

/// Reads one dataset at a time and keeps the last one open.
class Hdf5Boxes {
public:
    explicit Hdf5Boxes(std::shared_ptr<const Hdf5File> file);

    /// Stored bytes of a box, row-major. Errors: the box is not inside the dataset, it is too large, the library cannot read it.
    Expected<std::vector<std::byte>> read(const BoxMessage &box);
    /// Variable-length or fixed text, whole.
    Expected<std::vector<std::string>> texts(const std::string &path);
    /// Where the bytes lie, each address checked against what the library reads there.
    Expected<StorageMap> storage(const BoxMessage &box);

private:
    struct Held {
        std::string path;
        Hdf5Handle dataset, type, creation;
        std::vector<std::uint64_t> shape; ///< at least one axis
        bool scalar = false;
        std::size_t elementBytes = 0;
    };
    std::string subject(const std::string &path) const;
    Expected<const Held *> hold(const std::string &path);
    Expected<std::uint64_t> bytesOf(const Held &held, const BoxMessage &box) const;
    Expected<std::vector<std::byte>> readHeld(const Held &held, const BoxMessage &box, std::uint64_t bytes) const;
    StorageMap contiguousStorage(const Held &held) const;
    StorageMap chunkedStorage(const Held &held, const BoxMessage &box) const;

    std::shared_ptr<const Hdf5File> m_file;
    Expected<RawFile> m_raw;
    Held m_held;
};

} // namespace planish
