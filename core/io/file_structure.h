// The structure of a file as a value: what a reader (for HDF5 a process of its own) tells about a file without its data.
// First of the two seams around libhdf5; the other is block_source.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/io/error.h"

namespace planish {

/// How one stored number is encoded, from the type's own fields. `Other` datasets are listed with a text and never read.
enum class StoredType {
    F16, F32, F64, Bf16, I8, U8, I16, U16, I32, U32, I64, U64, Bool,
    Fp8E4M3, Fp8E5M2, Fp8E4M3Fnuz, Fp8E5M2Fnuz, Text, Other
};
enum class ByteOrder { Little, Big };

std::string_view nameOf(StoredType type); ///< "float16", "bfloat16", …
std::size_t byteSize(StoredType type);
/// "[384, 576]"
std::string shapeText(const std::vector<std::uint64_t> &shape);
/// Product of all factors; false when it overflows 64 bits or exceeds `limit`.
bool productFits(const std::vector<std::uint64_t> &factors, std::uint64_t limit, std::uint64_t *product = nullptr);

/// An attribute: text, list of texts, integer or double (arrays as lists).
using AttributeValue = std::variant<std::string, std::vector<std::string>, std::int64_t, double, std::vector<std::int64_t>, std::vector<double>>;
using Attributes = std::map<std::string, AttributeValue>;

struct FilterInfo {
    int id = 0;
    std::string name;
    bool available = true;
    bool lossy = false;
    std::vector<unsigned> values; ///< its client data; of shuffle: [0] = bytes of an element
};

/// One numeric member of a compound type (a table of records).
struct MemberInfo {
    std::string name;
    std::size_t offset = 0; ///< of its bytes inside one record
    StoredType type = StoredType::Other;
    ByteOrder order = ByteOrder::Little;
};

struct DatasetInfo {
    std::string path;                 ///< "/edges/layers.2.attn_in"
    std::vector<std::uint64_t> shape; ///< [] = scalar
    StoredType type = StoredType::Other;
    ByteOrder order = ByteOrder::Little;
    std::string typeText;             ///< as the library prints it, for messages
    std::vector<std::uint64_t> chunk; ///< empty = contiguous
    std::vector<FilterInfo> filters;
    Attributes attributes;
    std::uint64_t storedBytes = 0;
    std::int64_t offset = -1;         ///< of contiguous data in the file, -1 unknown
    std::uint64_t address = 0;        ///< object address: the same object under two names has one address
    std::size_t elementBytes = 0;     ///< size of one element as stored, also for types that are not numbers
    std::vector<MemberInfo> members;  ///< of a compound type, those that are numbers
    std::vector<std::byte> fill;      ///< one element as it stands in chunks that were never written; empty = zeros
    bool bordersUnfiltered = false;   ///< chunks that reach beyond the shape are stored without filters
};

struct RefusedObject {
    std::string path;
    std::string reason; ///< "external link to /etc/hostname: refused (pass --trust-links)"
};

struct FileStructure {
    std::string file;
    std::string format; ///< hdf5 | safetensors | gguf | imatrix_dat
    std::map<std::string, Attributes> groups; ///< path -> attributes, "/" included
    std::vector<DatasetInfo> datasets;        ///< in file order
    std::vector<RefusedObject> refused;
    std::vector<std::string> notes;
    std::map<std::string, std::string> aliases; ///< other path -> listed path of the same dataset (hard or soft links)

    const DatasetInfo *find(std::string_view path) const;
};

struct OpenOptions {
    bool trustLinks = false;
    bool noLock = false;
};

/// Reads the structure of an HDF5 file. Errors: not HDF5, truncated, locked; each names the file.
class StructureReader {
public:
    virtual ~StructureReader() = default;
    virtual Expected<FileStructure> structure(const std::string &file, const OpenOptions &options) = 0;
};

} // namespace planish
