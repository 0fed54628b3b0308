// Writes a native dump (planish-dump/1) row by row: memory does not grow with the file, and the file appears whole or not at all.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/io/dump.h"
#include "core/io/error.h"
#include "core/io/file_structure.h"
#include "kernels/matrix_view.h"

namespace planish {

/// What stands at the root: /model, /tokens and root attributes. ModelInfo fields that are 0 or empty are left out.
struct DumpHeader {
    ModelInfo model;
    TokenTable tokens; ///< text may be empty; mask is written when hasMask
    Attributes root;   ///< more root attributes (chat_template, bos_policy, created_at …)
};

enum class DumpStorage { Contiguous, Gzip }; ///< Gzip: chunks of rows, shuffle, deflate

struct DatasetStorage {
    StoredType type = StoredType::F16; ///< f16 | bf16 | f32 | f64; bf16 is stored as uint16 with stored_dtype
    DumpStorage storage = DumpStorage::Contiguous;
    std::uint64_t chunkRows = 64; ///< of Gzip
    int gzipLevel = 4;
};

/// One writer per file, one thread at a time. Destroyed before `finish`: nothing is left behind.
class DumpWriter {
public:
    static Expected<DumpWriter> create(const std::string &file, const DumpHeader &header);
    DumpWriter(DumpWriter &&) noexcept;
    DumpWriter &operator=(DumpWriter &&) noexcept;
    ~DumpWriter();

    /// Creates /edges/<id> [edge.rows, edge.channels] with its attributes, and /rows/<id> when rowToToken is not empty.
    Expected<void> addEdge(const DumpEdge &edge, const DatasetStorage &storage);
    /// The next rows of an edge, in file order; `finish` refuses an edge that got fewer rows than it declared.
    Expected<void> appendRows(const EdgeId &edge, ConstViewD rows);
    Expected<void> appendRows(const EdgeId &edge, ConstViewF rows);

    /// /weights/<name> [outputs, channels]; `bias` is a name under /biases or empty.
    Expected<void> addWeight(const TensorName &name, ConstViewD matrix, const DatasetStorage &storage,
                             const std::string &bias = {});
    Expected<void> addBias(const TensorName &name, std::span<const double> values, StoredType type);
    /// /norms/<name> and, with a bias, /norms/<name>.bias.
    Expected<void> addNorm(const TensorName &name, const NormParameters &norm, StoredType type);

    /// Anything else, e.g. under /planted: numbers of any numeric type and shape (product = values.size()), and attributes of any
    /// path.
    Expected<void> addArray(const std::string &path, std::span<const double> values, const std::vector<std::uint64_t> &shape,
                            StoredType type);
    Expected<void> addTexts(const std::string &path, const std::vector<std::string> &texts);
    Expected<void> addGroup(const std::string &path, const Attributes &attributes);
    Expected<void> setAttribute(const std::string &path, const std::string &name, const AttributeValue &value);

    /// Flushes, closes, renames into place.
    Expected<void> finish();

private:
    struct State;
    explicit DumpWriter(std::unique_ptr<State> state);
    std::unique_ptr<State> m_state;
};

} // namespace planish
