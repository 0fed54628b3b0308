// An opened activation dump as one value: model facts, token table, edges and the tensors it carries. Data is read on demand.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/error.h"
#include "core/io/file_structure.h"
#include "core/io/ids.h"
#include "kernels/matrix_view.h"

namespace planish {

/// /model attributes and config.json, 0 or empty where unknown.
struct ModelInfo {
    std::string model, revision, tokenizer, corpus, createdBy, family;
    std::int64_t hiddenSize = 0, numLayers = 0, numHeads = 0, numKvHeads = 0, headDim = 0, ffnSize = 0, vocabSize = 0, numExperts = 0;
    std::string normKind;   ///< rmsnorm | layernorm
    int normOffset = 0;     ///< 1: gain stored as w, applied as 1 + w
    std::string activation; ///< silu | gelu | relu …
    bool postNorm = false, tiedEmbeddings = false, qkNorm = false, parallelBlock = false;
    std::string ropeStyle;  ///< half | interleaved | none, empty unknown
    std::int64_t rotaryDim = 0;
    double ropeTheta = 0.0;
    std::string ropeScaling;
    double normEps = 0.0;
    std::vector<std::string> architectures;
    std::string baseBasis = "original";
    std::vector<std::string> stated; ///< keys of /model (hidden_size, post_norm, …) that the source really names
    bool states(std::string_view key) const;
};

/// One row of the token table. Missing datasets give request 0, position = row, phase 0, mask 1, id -1, no text.
struct TokenTable {
    std::vector<std::int32_t> id, request, position;
    std::vector<std::uint8_t> phase, mask;
    std::vector<std::string> text;
    bool hasRequest = false, hasPosition = false, hasPhase = false, hasMask = false, hasId = false;
    std::string unit = "token";
    std::size_t size() const { return request.size(); }
};

/// A norm stored in a dump or found in a checkpoint. gain [K], bias [K] or empty.
struct NormParameters {
    std::string kind; ///< rmsnorm | layernorm
    int offset = 0;
    double eps = 0.0;
    std::vector<double> gain, bias;
};

/// One edge as the dump states it; the graph completes it (core/graph/edge.h).
struct DumpEdge {
    EdgeId id;
    std::string path;        ///< inside the file
    std::int64_t layer = -1;
    std::string site;        ///< attn_in, attn_out, mlp_in, mlp_down, residual, …
    std::string producer;    ///< dump name, "stream:residual", or empty
    std::vector<std::string> consumers; ///< dump names, possibly name[a:b]
    std::string basis = "original";
    StoredType storedType = StoredType::F16;
    bool upcastBf16 = false;
    std::uint64_t rows = 0, channels = 0;
    std::vector<std::int32_t> rowToToken; ///< empty: row m is token m
    std::string axes = "rows,channels";
    std::int64_t heads = 0;
};

/// A tensor of the dump or a checkpoint that can be read as a matrix [outputs, channels].
struct TensorEntry {
    TensorName name;         ///< dump name
    std::string path;        ///< name inside its file
    std::string file;
    std::vector<std::uint64_t> shape;
    StoredType storedType = StoredType::F16;
    std::string bias;        ///< dump name of the bias, empty if none
    bool transposed = false; ///< stored [in, out] (Conv1D)
    std::int64_t rowBegin = 0, rowEnd = -1; ///< row range of a fused tensor, after orientation; -1 = all
    std::int64_t expert = -1;
};

struct Block {
    std::uint64_t begin = 0; ///< first file row
    MatrixD values;          ///< [rows, K]; non-finite values kept as stored
};

/// Facts of a dump without its data; shared by pointer to const.
struct DumpInfo {
    std::string file, format, layout, reason; ///< reason: why this layout was recognised
    double confidence = 1.0;
    ModelInfo model;
    TokenTable tokens;
    std::vector<DumpEdge> edges;
    std::vector<TensorEntry> weights;
    std::vector<TensorEntry> biases;
    std::map<std::string, NormParameters> norms; ///< by dump name
    std::vector<RefusedObject> refused;
    std::vector<std::string> notes;

    const DumpEdge *findEdge(const EdgeId &id) const;
};

/// Reads rows [first, first + rows) of one edge as stored into exactly as many bytes. From any number of threads at once.
using RowReader = std::function<Expected<void>(std::uint64_t first, std::uint64_t rows, std::span<std::byte> out)>;

/// Reads rows of an opened dump. Thread-safe; reads are serialised inside.
class Dump {
public:
    virtual ~Dump() = default;
    virtual const DumpInfo &info() const = 0;
    /// The given file rows (any order) of an edge, as double [rows, K].
    virtual Expected<MatrixD> readRows(const DumpEdge &edge, std::span<const std::int64_t> rows) const = 0;
    /// Visits all rows in blocks of about 32 MiB in file order, one block ahead; stops early on `false` or a stop request.
    virtual Expected<void> visitBlocks(const DumpEdge &edge, const std::function<bool(const Block &)> &visit,
                                       std::stop_token stop) const = 0;
    /// Raw stored blocks for fast statistics: rows as stored bytes, native byte order. Same order as visitBlocks.
    virtual Expected<void> visitRawBlocks(const DumpEdge &edge,
                                          const std::function<bool(std::uint64_t begin, std::uint64_t rows, std::span<const std::byte>)> &visit,
                                          std::stop_token stop) const = 0;
    /// For an edge that lies in one run of the file, in native byte order: reads that need no lock. Empty for any other.
    virtual RowReader rowReader(const DumpEdge &) const { return {}; }
    virtual Expected<MatrixD> readTensor(const TensorEntry &tensor) const = 0;
};

/// Opens a dump of any recognised layout. `layoutFile` overrides axes (dump-format.md), empty = none.
Expected<std::shared_ptr<const Dump>> openDump(const std::string &file, const OpenOptions &options, const std::string &layoutFile = {});

} // namespace planish
