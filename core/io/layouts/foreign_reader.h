// Collects what a foreign file holds: edges out of pieces, the token table their rows share, masks beside them, weights.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/layouts/axis.h"
#include "core/io/layouts/foreign_names.h"
#include "core/io/layouts/layout.h"

namespace planish {

/// One edge before it is added.
struct EdgeDraft {
    std::string path; ///< as shown
    PlaceInName place;
    std::string axes; ///< as shown: "batch, token, channel"
    std::vector<DataPiece> pieces;
    std::uint64_t channels = 0;
    std::int64_t heads = 0;
    TokenTable rows; ///< one entry per row; masks and ids included
    std::vector<std::string> consumers;
};

class ForeignReader {
public:
    ForeignReader(const FileStructure &structure, BlockSource &source);

    const FileStructure &structure() const { return m_structure; }
    BlockSource &source() const { return m_source; }
    LayoutResult &result() { return m_result; }
    void note(std::string text) { m_result.info.notes.push_back(std::move(text)); }
    void refuse(const std::string &path, std::string reason) { m_result.info.refused.push_back({path, std::move(reason)}); }

    const DatasetInfo *find(const std::string &path) const;
    /// A dataset of one of these names in the group of `path`, or (`outwards`) in a group around it, of `count` elements.
    const DatasetInfo *beside(const std::string &path, std::initializer_list<std::string_view> names, std::uint64_t count,
                              bool outwards = true) const;
    /// Whole numbers of a small dataset; empty and a note when it cannot be read.
    std::vector<std::int64_t> integers(const DatasetInfo &dataset);
    std::vector<double> numbers(const DatasetInfo &dataset);

    /// Requests and positions of the row axes, with mask and token ids when they lie beside the dataset.
    TokenTable rowsOf(const DatasetInfo &dataset, const Axes &axes, bool outwards = true);
    /// The mask says which rows are real; positions then count real rows.
    void applyMask(TokenTable &rows, const std::vector<std::int64_t> &mask, const std::string &path);

    /// Adds an edge; a bad one is refused by path.
    void addEdge(EdgeDraft draft);
    /// A dataset whose axes are known; a layer axis gives one edge per entry, numbered by `layers` or counted from 0.
    void addArray(const DatasetInfo &dataset, const Axes &axes, const std::vector<std::int64_t> &layers = {},
                  bool outwards = true);
    /// A weight [outputs, channels]: axes of rank 2 ([out, in] or [in, out]) or more.
    void addWeight(const DatasetInfo &dataset, const Axes &axes, const std::string &name, const std::string &bias = {},
                   std::int64_t rowBegin = 0, std::int64_t rowEnd = -1);
    void addBias(const DatasetInfo &dataset, const std::string &name);
    void addNorm(const DatasetInfo &gain, const DatasetInfo *bias, const std::string &name);
    /// Token table complete, tail rows looked at.
    LayoutResult finish();

private:
    std::string freeId(const EdgeDraft &draft) const;
    void placeRows(DumpEdge &edge, TokenTable rows);
    void inspectTail(const DumpEdge &edge);

    const FileStructure &m_structure;
    BlockSource &m_source;
    LayoutResult m_result;
    std::map<std::string, const DatasetInfo *, std::less<>> m_byPath;
    std::vector<std::pair<std::size_t, std::size_t>> m_blocks; ///< first token and count of every distinct set of rows
};

/// True for types activations have (floats, bf16, fp8).
bool isActivationType(StoredType type);
/// Rows numbered from 0 in one request.
TokenTable plainRows(std::uint64_t rows);
/// Appends rows to a table, one request after the other.
void appendRows(TokenTable &table, const TokenTable &more);

} // namespace planish
